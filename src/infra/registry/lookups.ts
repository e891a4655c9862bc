import type { Sql } from '../../state/ports.ts'
import type { Fault } from '../../state/registry/common.ts'
import { one } from '../database/database.ts'

/** Whether what a body names is there, as faults of the body. */

export const categoryFaults = async (
  sql: Sql,
  names: readonly string[],
  pointerOf: (index: number) => string,
): Promise<Fault[]> => {
  if (names.length === 0) return []
  const { rows } = await sql.query<{ name: string }>(
    'SELECT name FROM categories WHERE name IN (SELECT json_array_elements_text($1::json))',
    [JSON.stringify(names)],
  )
  const known = new Set(rows.map(({ name }) => name))
  return names.flatMap((name, index) =>
    known.has(name)
      ? []
      : [{ pointer: pointerOf(index), detail: `there is no category "${name}"; GET /admin/v1/categories` }],
  )
}

export const modelFaults = async (sql: Sql, aliases: readonly string[]): Promise<Fault[]> => {
  const { rows } = await sql.query<{ name: string }>(
    'SELECT name FROM models WHERE name IN (SELECT json_array_elements_text($1::json))',
    [JSON.stringify(aliases)],
  )
  const known = new Set(rows.map(({ name }) => name))
  return aliases.flatMap((alias, index) => {
    const pointer = `/models/${index}/model`
    if (!known.has(alias)) return [{ pointer, detail: `there is no model "${alias}"` }]
    if (aliases.indexOf(alias) < index) return [{ pointer, detail: `"${alias}" stands here already` }]
    return []
  })
}

export const keyFaults = async (sql: Sql, id: string): Promise<Fault[]> =>
  (await one(sql, 'SELECT 1 AS there FROM vendor_keys WHERE key_id = $1', [id]))
    ? []
    : [{ pointer: '/key_id', detail: `there is no key "${id}"` }]
