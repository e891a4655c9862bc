import { z } from 'zod'
import { type RuntimeState, runtimeStateSchema, type StateField, todoSchema } from './runtime-state.ts'

/**
 * What one action changed in the state beside appending itself. Written in the same statement as the action,
 * and small however long the history: lists but the output structure grow by what is given, todos and files merge by their names.
 */
export const patchSchema = runtimeStateSchema
  .omit({ action_history: true, usage: true })
  .extend({
    /** Opens the turn with its prompt. */
    prompts: z.string(),
    /** The goal of this turn. */
    task_goals: z.string(),
    /** Merged by file name, as `origin_files` are: one of a known name takes its place. */
    preprocessed_files: runtimeStateSchema.shape.preprocessed_files.partial(),
    /** Of this turn, merged by id. */
    todos: z.array(todoSchema),
  })
  .partial()

/** The fields of the state that one action changed. */
export type Patch = z.infer<typeof patchSchema>
/** A field that a patch may change. */
export type PatchField = keyof Patch & StateField

/** The entries with the new ones: those of a known key take its place, the others follow. */
const merge = <Item>(old: readonly Item[], added: readonly Item[], key: (item: Item) => string): Item[] => [
  ...new Map([...old, ...added].map((item) => [key(item), item])).values(),
]

/** The state with the patch of an action of `turn` (1-based) applied; the lists of the turn must be open. */
export const applyPatch = (state: RuntimeState, turn: number, patch: Patch): RuntimeState => {
  const at = turn - 1
  const { prompts, task_goals, todos, memory, origin_files, preprocessed_files: files, chat_history } = patch
  const known = state.preprocessed_files
  const ofTurn = todos && merge(state.todos[at] ?? [], todos, ({ id }) => id)
  return {
    ...state,
    user_context: patch.user_context ?? state.user_context,
    output_style: patch.output_style ?? state.output_style,
    output_structure: patch.output_structure ?? state.output_structure,
    scenario: patch.scenario ?? state.scenario,
    ...(prompts !== undefined && { prompts: state.prompts.with(at, prompts) }),
    ...(task_goals !== undefined && { task_goals: state.task_goals.with(at, task_goals) }),
    ...(ofTurn && { todos: state.todos.with(at, ofTurn) }),
    ...(memory && { memory: [...state.memory, ...memory] }),
    ...(chat_history && { chat_history: [...state.chat_history, ...chat_history] }),
    ...(origin_files && { origin_files: merge(state.origin_files, origin_files, ({ name }) => name) }),
    ...(files && {
      preprocessed_files: {
        documents: { ...known.documents, ...files.documents },
        tables: { ...known.tables, ...files.tables },
        other_files: { ...known.other_files, ...files.other_files },
      },
    }),
  }
}
