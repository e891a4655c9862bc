import {
  backgroundOf,
  type ContextFields,
  joinSections,
  type OpenedBlobs,
  resultsOf,
  section,
} from '../../state/context.ts'
import type { RuntimeState } from '../../state/runtime-state.ts'

/** What an output tool reads: the whole context. */
export const outputFields = [
  'prompts',
  'user_context',
  'memory',
  'output_style',
  'output_structure',
  'scenario',
  'task_goals',
  'origin_files',
  'todos',
  'action_history',
  'chat_history',
] as const satisfies readonly ContextFields[]

export type OutputState = Pick<RuntimeState, ContextFields>

/** What the model of an output tool is shown. */
export const outputContent = (state: OutputState, draft: string | null, blobs: OpenedBlobs): string =>
  joinSections([backgroundOf(state), section('Draft', draft ?? ''), resultsOf(state, blobs)])
