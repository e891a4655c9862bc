import { z } from 'zod'
import { buildBackground } from '../../context/background.ts'
import { contextFields } from '../../context/context.ts'
import { defineTool } from '../../graph/definitions.ts'
import { requestJson } from '../../graph/json-request.ts'
import type { Json, RuntimeState } from '../../state/runtime-state.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { turnActions, turnPrompt } from '../../state/turn.ts'
import {
  analysisInstructions,
  analysisReplySchema,
  chooseScenario,
  chooseStart,
  listStartTools,
  readStructure,
  readStyle,
} from './analysis.ts'

/** A prompt of at most this many characters that comes without files needs no analysis. */
const shortPrompt = 400

/** Analyses the goal: scenario, goal, style and structure, each only where it is not set yet, and where to begin. */
export default defineTool({
  name: 'understand',
  description:
    'Analyses what is wanted: scenario, goal, style and structure of the answer, and where to begin',
  kinds: ['prepare'],
  pure: true,
  input: z.strictObject({}),
  reads: contextFields,
  writes: ['scenario', 'task_goals', 'output_style', 'output_structure'],
  skip: (state) =>
    readOpening(state, 'rules').includes('understand') ||
    ['scenario', 'output_style', 'output_structure'].every((field) =>
      readOpening(state, 'given').includes(field),
    ) ||
    (isShort(turnPrompt(state)) && readOpening(state, 'files').length === 0),
  async run(state, { checkpoint, models, scenarios, request, graph, log }, signal) {
    const starts = listStartTools(graph, request)
    const { value, usage } = await requestJson(
      models,
      {
        role: 'understand',
        instructions: analysisInstructions(state.scenario === '' ? scenarios.list() : [], starts),
        parts: buildBackground(state),
        schema: analysisReplySchema,
      },
      signal,
      log,
    )
    if (!value)
      return checkpoint({
        summary: 'The goal is taken as the request says it',
        result: { by: 'rules' },
        usage,
        relevance: 0,
        next: ['planner'],
      })
    const structure = state.output_structure.length === 0 ? readStructure(value) : []
    const style = state.output_style === '' ? readStyle(value) : ''
    const start = chooseStart(value, starts, request, state.output_structure.length + structure.length > 0)
    return checkpoint(
      {
        summary: cutText(`Goal: ${value.task_goal}`, 500),
        result: { by: 'model', task_goal: value.task_goal, start },
        usage,
        relevance: 0.3,
        next: [start],
      },
      {
        ...(value.task_goal.trim() !== '' && { task_goals: value.task_goal }),
        ...(state.scenario === '' && { scenario: chooseScenario(value, scenarios) }),
        ...(style !== '' && { output_style: style }),
        ...(structure.length > 0 && { output_structure: structure }),
      },
    )
  },
})

/** By whole characters: an emoji or a rare ideograph takes two units of a string's length. */
const isShort = (prompt: string): boolean =>
  prompt.length <= 2 * shortPrompt && [...prompt].length <= shortPrompt

/** What the turn was opened with: names of files, of fields the caller has set, of roles that rules replace. */
const readOpening = (
  state: Pick<RuntimeState, 'action_history'>,
  name: 'files' | 'given' | 'rules',
): readonly Json[] => {
  const list = turnActions(state).find((action) => action.node === 'load-session')?.result[name]
  return Array.isArray(list) ? list : []
}
