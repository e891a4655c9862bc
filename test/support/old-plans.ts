import type { Sql } from '../../src/state/ports/sql.ts'

type Plan = Record<string, number> & { Plans?: Plan[]; 'Relation Name'?: string }

const addReads = ({ Plans: parts = [], ...plan }: Plan, reads: Record<string, number>): void => {
  const table = plan['Relation Name']
  if (table)
    reads[table] =
      (reads[table] ?? 0) +
      Number(plan['Actual Loops']) * (Number(plan['Actual Rows']) + (plan['Rows Removed by Filter'] ?? 0))
  for (const part of parts) addReads(part, reads)
}

const toLiteral = (value: unknown): string =>
  value === null ? 'NULL' : `'${String(value).replaceAll("'", "''")}'`

/** The rows of each table that the statements of `work` read once `fill` has filled it, by the plans that they got before. */
export const readByOldPlans = async (
  sql: Sql,
  work: (sql: Sql) => Promise<unknown>,
  fill: () => Promise<unknown>,
): Promise<Record<string, number>> => {
  const statements: string[] = []
  const query: Sql['query'] = async (text, values = []) => {
    const name = `old_${statements.length}`
    await sql.query(`PREPARE ${name} AS ${text}`)
    statements.push(
      `EXECUTE ${name}${Array.isArray(values) && values.length > 0 ? `(${values.map(toLiteral).join()})` : ''}`,
    )
    return sql.query(statements.at(-1) ?? '')
  }
  await sql.query("SELECT set_config('plan_cache_mode', 'force_generic_plan', true)")
  await work({ ...sql, query })
  await fill()
  const reads: Record<string, number> = {}
  for (const statement of statements) {
    const { rows } = await sql.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
      `EXPLAIN (ANALYZE, FORMAT JSON) ${statement}`,
    )
    for (const row of rows) addReads(row['QUERY PLAN'][0].Plan, reads)
  }
  return reads
}
