import { z } from 'zod'
import { MasonError } from './errors.ts'
import { type Patch, patchSchema } from './patch.ts'
import { type ActionBody, actionBodySchema, type Json } from './runtime-state.ts'
import { contentHash } from './text/content-hash.ts'
import { cutText } from './text/cut-text.ts'
import { nextTurn } from './text/next-turn.ts'
import { noUsage } from './token-usage.ts'

/** Results and contexts larger than this, in bytes of JSON, leave the action for a blob. */
const maxInlineBytes = 32 * 1024
const headChars = 2000
/** Characters of a large result that a prompt may show: the 100 KB that a page of `read_file` has at most. Its hash is of these. */
export const maxLargeChars = 101 * 1024
/** Reading, checking or writing this much JSON takes milliseconds. */
const largeLength = 256 * 1024
/** What one unit of a string's length takes in UTF-8 at the most. */
const maxBytesPerUnit = 3

/**
 * What a node writes down of its work; the rest has defaults. `node` is the node's own name, always.
 *
 * @example
 * ```ts
 * import type { ActionDraft } from 'mason-runtime'
 *
 * const draft: ActionDraft = { summary: 'Counted 3 words', result: { text: '3 words' } }
 * ```
 */
export type ActionDraft = Partial<Omit<ActionBody, 'node' | 'summary'>> & { summary: string }

/** An action made ready for the log: the JSON texts that are stored, and what they read back as. */
export type PreparedAction = { body: ActionBody; bodyText: string; patch: Patch; patchText: string }

/** An action of a node's draft, with the defaults of what the draft leaves out. */
export const fillAction = (node: string, draft: ActionDraft & { next: string[] }): ActionBody => ({
  node,
  preparation: draft.preparation ?? '',
  summary: draft.summary,
  result: draft.result ?? {},
  context: draft.context ?? null,
  relevance: draft.relevance ?? 0.5,
  usage: draft.usage ?? noUsage,
  next: draft.next,
})

/**
 * Makes one action of a node's draft: fills defaults, checks it against the schema and takes it through JSON, so
 * that the state in memory and the state read back are the same. `keepBlob` stores what is too large.
 */
export const prepareAction = async (
  node: string,
  draft: ActionDraft & { next: string[] },
  patch: Patch,
  keepBlob: (bytes: Uint8Array) => Promise<string>,
): Promise<PreparedAction> => {
  const text = JSON.stringify(fillAction(node, draft), refuseLost)
  await afterLarge(text)
  const body = check(node, actionBodySchema, JSON.parse(text))
  body.summary = cutText(body.summary, headChars)
  if (text.length * maxBytesPerUnit > maxInlineBytes) {
    await afterLarge(text)
    body.result = await moveToBlob(body.result, keepBlob)
    if (body.context) body.context.content = shorten(body.context.content)
  }
  const given = JSON.stringify(patch)
  await afterLarge(given)
  const checked = given === '{}' ? {} : check(node, patchSchema, JSON.parse(given))
  await afterLarge(given)
  // what was checked is what is stored: the check leaves out what no object may hold, such as `__proto__`
  return { body, bodyText: JSON.stringify(body), patch: checked, patchText: JSON.stringify(checked) }
}

/** Whether JSON would drop or empty it without a word, or cannot hold it. */
const isLost = (value: unknown): boolean =>
  typeof value === 'object'
    ? value instanceof Map || value instanceof Set || value instanceof Promise || value instanceof Error
    : typeof value === 'number'
      ? !Number.isFinite(value)
      : typeof value === 'bigint' || typeof value === 'function' || typeof value === 'symbol'

const refuseLost = (key: string, value: unknown): unknown => {
  if (!isLost(value)) return value
  throw new MasonError('node_failed', `JSON cannot hold what the action has as "${key}"`, {
    remedy: 'await it, or make it a text, number, list or object',
  })
}

/** Ends the turn of the event loop after work on a large text: the next step on it has a turn of its own. */
const afterLarge = async (text: string): Promise<void> => {
  if (text.length > largeLength) await nextTurn()
}

const check = <Schema extends z.ZodType>(node: string, schema: Schema, value: unknown): z.infer<Schema> => {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new MasonError(
    'node_failed',
    `node "${node}" gave an invalid action: ${z.prettifyError(parsed.error)}`,
    {
      remedy: `fix what src/**/${node}.node.ts or .tool.ts passes to checkpoint`,
    },
  )
}

/** What routing, reflection, the next plan and the answer are read from stays in the action, however large the rest. */
const retainedKeys = [
  'call calls block on_failure leading_reads dialect closing notes worked_ms not_before structure',
  'output_style given open later start proposed judged is_error draft finish answer error reasoning',
  'reasoned_by provenance compacted',
].flatMap((keys) => keys.split(' '))

const moveToBlob = async (
  result: ActionBody['result'],
  keepBlob: (bytes: Uint8Array) => Promise<string>,
): Promise<ActionBody['result']> => {
  const text = JSON.stringify(result)
  if (text.length * maxBytesPerUnit <= maxInlineBytes) return result
  const bytes = Buffer.from(text)
  if (bytes.length <= maxInlineBytes) return result
  const readable = typeof result.text === 'string' ? result.text : text
  const small: ActionBody['result'] = {
    blob: await keepBlob(bytes),
    bytes: bytes.length,
    head: readable.slice(0, headChars).toWellFormed(),
  }
  if (typeof result.text === 'string')
    small.text_sha256 = contentHash([result.text.length, result.text.slice(0, maxLargeChars)])
  for (const key of retainedKeys) if (result[key] !== undefined) small[key] = result[key]
  return small
}

const shorten = (content: Json): Json => {
  const text = typeof content === 'string' ? content : JSON.stringify(content)
  if (text.length <= maxInlineBytes) return content
  return `${text.slice(0, maxInlineBytes - 100).toWellFormed()}\n[cut: the whole stands in the action's result]`
}
