import type { Sql } from '../../state/ports.ts'
import type { Fault } from '../../state/registry/common.ts'
import type { ScenarioChange, ScenarioInput, ScenarioView } from '../../state/registry/scenario.ts'
import { createStore, type StoreContext, type StoredRow, timesOf } from './store.ts'

type Row = StoredRow & Omit<ScenarioView, 'id' | 'created_at' | 'updated_at'>

/** Kinds of request, and how the graph works on each. */
export const createScenarios = (context: StoreContext) =>
  createStore<Row, ScenarioInput, ScenarioChange, ScenarioView>(context, {
    name: 'scenario',
    prefix: 'sce',
    table: 'scenarios',
    idColumn: 'scenario_id',
    columns: `t.name, t.description, t.prompts, t.tools, t.output_tool, t.limits, t.models, t.rules, t.status`,
    scopedBy: [],
    viewOf: (row) => ({ ...fieldsOf(row), ...timesOf(row) }),
    inputOf: fieldsOf,
    merge: (before, { prompts, limits, models, ...change }) =>
      ({
        ...before,
        ...change,
        prompts: { ...before.prompts, ...prompts },
        limits: withoutNull({ ...before.limits, ...limits }),
        models: { ...before.models, ...models },
      }) as ScenarioInput,
    faultsOf: (sql, { models }) => modelFaults(sql, models),
    valuesOf: ({ prompts, limits, models, ...input }) => ({
      name: input.name,
      description: input.description,
      prompts: JSON.stringify(withoutNull(prompts)),
      tools: input.tools ?? null,
      output_tool: input.output_tool ?? null,
      limits: JSON.stringify(limits),
      models: JSON.stringify(withoutNull(models)),
      rules: input.rules,
      status: input.status,
    }),
    usersOf: async () => [],
  })

const fieldsOf = ({ id: _, created_at: __, updated_at: ___, at: ____, ...fields }: Row) => fields

type WithoutNull<Members> = { [Name in keyof Members]?: NonNullable<Members[Name]> }

const withoutNull = <Members extends object>(members: Members): WithoutNull<Members> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value != null)) as WithoutNull<Members>

const modelFaults = async (sql: Sql, models: ScenarioInput['models']): Promise<Fault[]> => {
  const named = Object.entries(withoutNull(models))
  if (named.length === 0) return []
  const { rows } = await sql.query<{ name: string }>(
    'SELECT name FROM models WHERE name IN (SELECT json_array_elements_text($1::json))',
    [JSON.stringify(named.map(([, alias]) => alias))],
  )
  const known = new Set(rows.map(({ name }) => name))
  return named.flatMap(([role, alias]) =>
    known.has(alias) ? [] : [{ pointer: `/models/${role}`, detail: `there is no model "${alias}"` }],
  )
}
