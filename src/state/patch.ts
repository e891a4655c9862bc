import { z } from 'zod'
import {
  chatMessageSchema,
  memorySchema,
  originFileSchema,
  outputFieldSchema,
  preprocessedFilesSchema,
  type RuntimeState,
  type StateField,
  todoSchema,
} from './runtime-state.ts'

/**
 * What one action changed in the state beside appending itself. Written in the same statement as the action,
 * and small however long the history: lists grow by what is given, todos and files merge by their names.
 */
export const patchSchema = z
  .strictObject({
    /** Opens the turn with its prompt. */
    prompts: z.string(),
    user_context: z.record(z.string(), z.json()),
    /** Appended. */
    memory: z.array(memorySchema),
    output_style: z.string(),
    /** The whole list. */
    output_structure: z.array(outputFieldSchema),
    scenario: z.string(),
    /** The goal of this turn. */
    task_goals: z.string(),
    /** Appended; a file of a known name takes its place. */
    origin_files: z.array(originFileSchema),
    /** Merged by file name. */
    preprocessed_files: preprocessedFilesSchema.partial(),
    /** Of this turn, merged by id. */
    todos: z.array(todoSchema),
    /** Appended. */
    chat_history: z.array(chatMessageSchema),
  })
  .partial()

/** The fields of the state that one action changed. */
export type Patch = z.infer<typeof patchSchema>
/** A field that a patch may change. */
export type PatchField = keyof Patch & StateField

/** Fields that only grow: their new entries, after those whose `key` is not replaced. */
const merge = <Item>(old: readonly Item[], added: readonly Item[], key: (item: Item) => string): Item[] => {
  const byKey = new Map(added.map((item) => [key(item), item]))
  const kept = old.map((item) => {
    const replacement = byKey.get(key(item))
    byKey.delete(key(item))
    return replacement ?? item
  })
  return [...kept, ...byKey.values()]
}

/** The state with the patch of an action of `turn` (1-based) applied; the lists of the turn must be open. */
export const applyPatch = (state: RuntimeState, turn: number, patch: Patch): RuntimeState => {
  const next = { ...state }
  const at = turn - 1
  const setTurn = <Item>(list: readonly Item[], item: Item): Item[] => list.with(at, item)
  if (patch.prompts !== undefined) next.prompts = setTurn(next.prompts, patch.prompts)
  if (patch.task_goals !== undefined) next.task_goals = setTurn(next.task_goals, patch.task_goals)
  if (patch.todos !== undefined)
    next.todos = setTurn(
      next.todos,
      merge(next.todos[at] ?? [], patch.todos, (todo) => todo.id),
    )
  if (patch.user_context !== undefined) next.user_context = patch.user_context
  if (patch.output_style !== undefined) next.output_style = patch.output_style
  if (patch.output_structure !== undefined) next.output_structure = patch.output_structure
  if (patch.scenario !== undefined) next.scenario = patch.scenario
  if (patch.memory !== undefined) next.memory = [...next.memory, ...patch.memory]
  if (patch.chat_history !== undefined) next.chat_history = [...next.chat_history, ...patch.chat_history]
  if (patch.origin_files !== undefined)
    next.origin_files = merge(next.origin_files, patch.origin_files, (file) => file.name)
  if (patch.preprocessed_files !== undefined) {
    const files = next.preprocessed_files
    const added = patch.preprocessed_files
    next.preprocessed_files = {
      documents: { ...files.documents, ...added.documents },
      tables: { ...files.tables, ...added.tables },
      other_files: { ...files.other_files, ...added.other_files },
    }
  }
  return next
}
