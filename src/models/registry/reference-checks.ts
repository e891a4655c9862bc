import { queryOne } from '../../infra/database/database.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { FieldError } from '../../state/resource-schema.ts'

/** Checks that the resources that a body names exist. */

/** An error for each unknown category. */
export const findCategoryErrors = async (
  sql: Sql,
  names: readonly string[],
  toFieldPointer: (index: number) => string,
): Promise<FieldError[]> => {
  if (names.length === 0) return []
  const { rows } = await sql.query<{ name: string }>(
    'SELECT name FROM categories WHERE name IN (SELECT json_array_elements_text($1::json))',
    [JSON.stringify(names)],
  )
  const known = new Set(rows.map(({ name }) => name))
  return names.flatMap((name, index) =>
    known.has(name)
      ? []
      : [
          {
            pointer: toFieldPointer(index),
            detail: `there is no category "${name}"; GET /admin/v1/categories`,
          },
        ],
  )
}

/** An error for each unknown or repeated alias in `models` of a route. */
export const findAliasErrors = async (sql: Sql, aliases: readonly string[]): Promise<FieldError[]> => {
  const { rows } = await sql.query<{ name: string }>(
    'SELECT name FROM models WHERE name IN (SELECT json_array_elements_text($1::json))',
    [JSON.stringify(aliases)],
  )
  const known = new Set(rows.map(({ name }) => name))
  return aliases.flatMap((alias, index) => {
    const pointer = `/models/${index}/model`
    if (!known.has(alias)) return [{ pointer, detail: `there is no model "${alias}"` }]
    if (aliases.indexOf(alias) < index) return [{ pointer, detail: `"${alias}" is in the list already` }]
    return []
  })
}

/** An error for an unknown key. */
export const findKeyErrors = async (sql: Sql, id: string): Promise<FieldError[]> =>
  (await queryOne(sql, 'SELECT 1 AS there FROM vendor_keys WHERE key_id = $1', [id]))
    ? []
    : [{ pointer: '/key_id', detail: `there is no key "${id}"` }]
