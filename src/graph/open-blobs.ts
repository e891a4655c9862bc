import type { OpenedBlobs } from '../state/context.ts'
import { readResult } from '../state/inline-blobs.ts'
import type { Blobs } from '../state/ports.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { createTurnScan } from '../state/scan-turn.ts'
import { turnActions } from '../state/turn.ts'

/** Characters of large results that are brought back into one prompt, the latest first. */
const budgetChars = 240_000

const largeResults = createTurnScan(({ result }) => typeof result.blob === 'string')

/** Brings back the texts of this turn's large results, as far as a prompt has room for them. */
export const openBlobs = async (
  state: Pick<RuntimeState, 'action_history'>,
  blobs: Blobs,
): Promise<OpenedBlobs> => {
  const opened = new Map<string, string>()
  let left = budgetChars
  for (const { result } of largeResults(turnActions(state)).reverse()) {
    if (typeof result.blob !== 'string' || opened.has(result.blob)) continue
    if (Number(result.bytes) > left) continue
    const bytes = await blobs.read(result.blob)
    const text = bytes && readableText(Buffer.from(bytes).toString('utf8'))
    if (!text) continue
    left -= text.length
    opened.set(result.blob, text)
  }
  return opened
}

/** What a model reads of a stored result; null where a tool's own `blob` names bytes that are none. */
const readableText = (json: string): string | null => {
  const result = readResult(json)
  return result && (typeof result.text === 'string' ? result.text : json)
}
