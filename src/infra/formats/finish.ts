import type { ModelReply } from '../../state/ports.ts'

/** How vendors say why an answer ended, by meaning. Compared without regard to case. */
const words = {
  length:
    'length max_tokens max_output_tokens model_length model_context_window_exceeded max_completion_tokens token_limit',
  content_filter:
    'content_filter content_filtered safety recitation blocklist prohibited_content spii image_safety language ' +
    'image_prohibited_content image_recitation refusal sensitive error_toxic guardrail_intervened other',
  failed:
    'error failed error_limit insufficient_system_resource network_error malformed_function_call ' +
    'unexpected_tool_call malformed_response cancelled',
  /** Sent by some in each event before the last. */
  none: 'null none finish_reason_unspecified in_progress incomplete',
} as const
type Meaning = keyof typeof words

const meanings: ReadonlyMap<string, Meaning> = new Map(
  (Object.keys(words) as Meaning[]).flatMap((meaning) =>
    words[meaning].split(' ').map((word) => [word, meaning] as const),
  ),
)

/** What a format's `finish` gave, as a word; null while the answer goes on. `true` (as in `done: true`) is `stop`. */
export const finishWord = (found: unknown): string | null => {
  if (found === true) return 'stop'
  if (typeof found !== 'string' || found === '') return null
  return meanings.get(found.toLowerCase()) === 'none' ? null : found
}

/** Whether the vendor says by this word that it could not finish. */
export const isFailure = (word: string): boolean => meanings.get(word.toLowerCase()) === 'failed'

/** An unknown word is an ordinary end. */
export const finishOf = (word: string | null, hasCalls: boolean): ModelReply['finish'] => {
  const meaning = word === null ? undefined : meanings.get(word.toLowerCase())
  if (meaning === 'length' || meaning === 'content_filter') return meaning
  return hasCalls ? 'tool_calls' : 'stop'
}
