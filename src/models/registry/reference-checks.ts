import { queryOne } from '../../infra/database/database.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { FieldError } from '../../state/resource-schema.ts'

/** Checks that the resources that a body names exist. */

const readKnownNames = async (
  sql: Sql,
  table: 'categories' | 'models',
  names: readonly string[],
): Promise<ReadonlySet<string>> => {
  if (names.length === 0) return new Set()
  const { rows } = await sql.query<{ name: string }>(
    `SELECT name FROM ${table} WHERE name IN (SELECT json_array_elements_text($1::json))`,
    [JSON.stringify(names)],
  )
  return new Set(rows.map(({ name }) => name))
}

/** An error for each unknown category. */
export const findCategoryErrors = async (
  sql: Sql,
  names: readonly string[],
  toFieldPointer: (index: number) => string,
): Promise<FieldError[]> => {
  const known = await readKnownNames(sql, 'categories', names)
  return names.flatMap((name, index) => {
    const detail = `there is no category "${name}"; GET /admin/v1/categories`
    return known.has(name) ? [] : [{ pointer: toFieldPointer(index), detail }]
  })
}

/** An error for each alias that no model has, and for each repeated one where they must differ. */
export const findAliasErrors = async (
  sql: Sql,
  aliases: readonly string[],
  toFieldPointer: (index: number) => string,
  mustDiffer = false,
): Promise<FieldError[]> => {
  const known = await readKnownNames(sql, 'models', aliases)
  return aliases.flatMap((alias, index) => {
    const pointer = toFieldPointer(index)
    if (!known.has(alias)) return [{ pointer, detail: `there is no model "${alias}"` }]
    if (mustDiffer && aliases.indexOf(alias) < index)
      return [{ pointer, detail: `"${alias}" is in the list already` }]
    return []
  })
}

/** An error for an unknown key. */
export const findKeyErrors = async (sql: Sql, id: string): Promise<FieldError[]> =>
  (await queryOne(sql, 'SELECT 1 AS there FROM vendor_keys WHERE key_id = $1', [id]))
    ? []
    : [{ pointer: '/key_id', detail: `there is no key "${id}"` }]
