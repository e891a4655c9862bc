import { answeredCalls } from '../../state/calls.ts'
import {
  backgroundOf,
  type ContextFields,
  joinSections,
  type OpenedBlobs,
  resultsOf,
  section,
} from '../../state/context.ts'
import type { RuntimeState } from '../../state/runtime-state.ts'
import { turnActions } from '../../state/turn.ts'

export type OutputState = Pick<RuntimeState, ContextFields>

/** What the model of an output tool is shown. */
export const outputContent = (state: OutputState, draft: string | null, blobs: OpenedBlobs): string =>
  joinSections([
    backgroundOf(state),
    section('Draft', draft ?? ''),
    resultsOf(answeredCalls(turnActions(state)), blobs),
  ])
