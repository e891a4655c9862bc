import { z } from 'zod'
import { askForJson } from '../graph/ask-for-json.ts'
import { defineTool } from '../graph/tool.ts'
import { backgroundOf, contextFields } from '../state/context.ts'
import { idSchema } from '../state/run-request.ts'
import { type OutputPiece, outputTypeSchema, type RuntimeState } from '../state/runtime-state.ts'
import { turnActions, turnPrompt } from '../state/turn.ts'

const instructions = `You analyse what a user wants before an agent starts to work.
Give the scenario in two or three words, the goal in one sentence, and the direction the work should take.
Leave output_style empty unless the request asks for a manner of writing.
Leave output_structure empty unless the request asks for several separate, named pieces.`

const reply = z.object({
  scenario: z.string(),
  task_goal: z.string(),
  output_style: z.string().nullish(),
  output_structure: z
    .array(z.object({ id: z.string().min(1), expected: z.string(), type: outputTypeSchema }))
    .nullish(),
  direction: z.string().nullish(),
})

/** As many as a request may ask for. */
const maxPieces = 50

/** A prompt of at most this many characters that comes without files needs no analysis. */
const shortPrompt = 400

/** Analyses the goal: scenario, goal, style and structure, each only where it is not set yet. */
export default defineTool({
  name: 'understand',
  description: 'Analyses what is wanted: scenario, goal, style and structure of the answer',
  kinds: ['prepare'],
  pure: true,
  input: z.strictObject({}),
  reads: contextFields,
  writes: ['scenario', 'task_goals', 'output_style', 'output_structure'],
  skip: (state) => turnPrompt(state).length <= shortPrompt && !hasNewFiles(state),
  async run(state, { checkpoint, models, log }, signal) {
    const { value, usage } = await askForJson(
      models,
      { role: 'understand', instructions, content: backgroundOf(state), schema: reply },
      signal,
      log,
    )
    if (!value)
      return checkpoint({
        summary: 'The goal is taken as the request says it',
        result: { by: 'rules' },
        usage,
        relevance: 0,
      })
    const structure = structureOf(value)
    return checkpoint(
      {
        summary: `Goal: ${value.task_goal}`.slice(0, 500),
        preparation: value.direction ?? '',
        result: { by: 'model', task_goal: value.task_goal, direction: value.direction ?? '' },
        usage,
        relevance: 0.3,
      },
      {
        task_goals: value.task_goal,
        ...(state.scenario === '' && { scenario: value.scenario }),
        ...(state.output_style === '' && value.output_style && { output_style: value.output_style }),
        ...(state.output_structure.length === 0 && structure.length > 0 && { output_structure: structure }),
      },
    )
  },
})

/** The pieces a model proposes, each under an id that can stand as a key; of equal ids the first. */
const structureOf = ({ output_structure }: z.infer<typeof reply>): OutputPiece[] => {
  const byId = new Map<string, OutputPiece>()
  for (const piece of output_structure ?? [])
    if (idSchema.safeParse(piece.id).success && !byId.has(piece.id))
      byId.set(piece.id, { ...piece, content: null })
  return [...byId.values()].slice(0, maxPieces)
}

const hasNewFiles = (state: Pick<RuntimeState, 'action_history'>): boolean => {
  const files = turnActions(state).find((action) => action.node === 'load-session')?.result.files
  return Array.isArray(files) && files.length > 0
}
