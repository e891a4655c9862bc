import type { Sql } from '../../state/ports/sql.ts'
import type { FieldError } from '../../state/resource-schema.ts'
import type { ScenarioChange, ScenarioInput, ScenarioView } from '../../state/scenario.ts'
import { createResourceStore, type ResourceRow, type ResourceStoreContext } from './resource-store.ts'

type Row = ResourceRow & Omit<ScenarioView, 'id' | 'created_at' | 'updated_at'>

/** Scenarios: kinds of request, and how the graph handles each. */
export const createScenarios = (context: ResourceStoreContext) =>
  createResourceStore<Row, ScenarioInput, ScenarioChange, ScenarioView>(context, {
    name: 'scenario',
    prefix: 'sce',
    table: 'scenarios',
    idColumn: 'scenario_id',
    columns: `t.name, t.description, t.prompts, t.tools, t.output_tool, t.limits, t.models, t.rules, t.status`,
    scopedBy: [],
    toInput: toFields,
    merge: (before, { prompts, limits, models, ...change }) =>
      ({
        ...before,
        ...change,
        prompts: { ...before.prompts, ...prompts },
        limits: dropNulls({ ...before.limits, ...limits }),
        models: { ...before.models, ...models },
      }) as ScenarioInput,
    findErrors: (sql, { models }) => findAliasErrors(sql, models),
    toValues: ({ prompts, limits, models, ...input }) => ({
      name: input.name,
      description: input.description,
      prompts: JSON.stringify(dropNulls(prompts)),
      tools: input.tools ?? null,
      output_tool: input.output_tool ?? null,
      limits: JSON.stringify(limits),
      models: JSON.stringify(dropNulls(models)),
      rules: input.rules,
      status: input.status,
    }),
  })

const toFields = ({ id: _, created_at: __, updated_at: ___, at: ____, ...fields }: Row) => fields

type WithoutNull<Members> = { [Name in keyof Members]?: NonNullable<Members[Name]> }

const dropNulls = <Members extends object>(members: Members): WithoutNull<Members> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value != null)) as WithoutNull<Members>

const findAliasErrors = async (sql: Sql, models: ScenarioInput['models']): Promise<FieldError[]> => {
  const named = Object.entries(dropNulls(models))
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
