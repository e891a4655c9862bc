import {
  createResourceStore,
  dropNulls,
  type ResourceRow,
  type ResourceStoreContext,
} from '../../infra/resources/resource-store.ts'
import {
  type ScenarioChange,
  type ScenarioInput,
  type ScenarioView,
  scenarioSchemas,
} from '../../state/scenario.ts'
import { findAliasErrors } from './reference-checks.ts'

/** Scenarios: kinds of request, and how the graph handles each. */
export const createScenarios = (context: ResourceStoreContext) =>
  createResourceStore<ResourceRow, ScenarioInput, ScenarioChange, ScenarioView>(context, {
    name: 'scenario',
    prefix: 'sce',
    table: 'scenarios',
    idColumn: 'scenario_id',
    input: scenarioSchemas.input,
    json: ['prompts', 'limits', 'models'],
    merged: ['prompts', 'limits', 'models'],
    findErrors: (sql, { models }) => {
      const byRole = dropNulls(models)
      const roles = Object.keys(byRole)
      return findAliasErrors(sql, Object.values(byRole), (index) => `/models/${roles[index]}`)
    },
  })
