import type { Models } from '../state/ports/models.ts'
import { operatorWords, ownText, type PromptText } from '../state/provenance.ts'
import type { AdmittedRequest } from '../state/run-request.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import type { Scenario, Scenarios } from '../state/scenario.ts'

/** No scenarios: every name is free text. */
export const noScenarios: Scenarios = { list: () => [], find: () => null }

/** The scenario a run works by: what the state says, and before its turn is open what the request says over that. */
export const findScenario = (
  scenarios: Scenarios,
  request: Pick<AdmittedRequest, 'scenario'>,
  state: Pick<RuntimeState, 'scenario'>,
  isOpen: boolean,
): Scenario | null => {
  const name = isOpen ? state.scenario : (request.scenario ?? state.scenario)
  return name === '' ? null : scenarios.find(name)
}

/** The request with what its scenario says of tools, output, limits and models; what it says itself wins. */
export const withScenario = (request: AdmittedRequest, scenario: Scenario | null): AdmittedRequest => {
  if (!scenario) return request
  const { planner, reflection, output } = scenario.models
  return {
    ...request,
    ...(request.tools === undefined && scenario.tools !== null && { tools: scenario.tools }),
    // a structure that the request names is filled, whatever its scenario answers with
    ...(scenario.output_tool !== null &&
      !(scenario.output_tool === 'answer' && request.output?.structure?.length) && {
        output: { tool: scenario.output_tool, ...request.output },
      }),
    limits: { ...scenario.limits, ...request.limits },
    models: {
      ...(planner && { planner }),
      ...(reflection && { reflection }),
      ...(output && { output }),
      ...request.models,
    },
  }
}

const withPrompt = (instructions: PromptText, name: string, prompt: string): PromptText =>
  ownText`${instructions}\n\n# Scenario: ${operatorWords(name)}\n${operatorWords(prompt)}`

type PromptRole = keyof Scenario['prompts']

/** The models as a scenario has them called: its prompt after a role's instructions, its model where none is named. */
export const withScenarioModels = (models: Models, scenario: Scenario | null): Models => {
  if (!scenario) return models
  return {
    ...models,
    call(request, signal) {
      const role = request.role as PromptRole
      const prompt = scenario.prompts[role]
      const model = request.model ?? scenario.models[role]
      const [first, ...rest] = request.messages
      const messages =
        prompt && first?.role === 'system'
          ? [{ ...first, content: withPrompt(first.content, scenario.name, prompt) }, ...rest]
          : request.messages
      return models.call({ ...request, messages, ...(model && { model }) }, signal)
    },
  }
}
