import { isJsonObject } from '../../../infra/lib/json-text.ts'
import type { Json } from '../../../state/runtime-state.ts'
import type { CanonicalResult } from '../../ports/model-ports.ts'
import type { FormatInput, PollFormat, StreamFormat } from '../../schemas/response-format.ts'
import { builtInFormats } from '../built-in/built-in-formats.ts'
import { checkFormat } from '../format-check.ts'
import { splitFrames, testFormat } from '../format-test.ts'
import { listRequiredPaths } from '../required-paths.ts'
import { readErrorValue } from '../result-parts.ts'
import { guessPaths } from './path-guess.ts'

/** What an admin pasted: one response, or a stream. */
type PastedResponse =
  | { kind: 'whole'; raw: unknown }
  | { kind: 'stream'; raw: string; format: StreamFormat['format']; done: string | null; events: unknown[] }

const tryParseJson = (text: string): { value: unknown } | null => {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return null
  }
}

/** Null when the text is neither JSON nor a stream. */
const readPastedResponse = (raw: unknown): PastedResponse | null => {
  if (typeof raw !== 'string') return { kind: 'whole', raw }
  const whole = tryParseJson(raw)
  if (whole !== null && typeof whole.value === 'object') return { kind: 'whole', raw: whole.value }
  const format = /^\s*(data|event|id|retry|):/m.test(raw) ? 'sse' : 'ndjson'
  const frames = splitFrames(raw, format)
  const last = frames.at(-1)
  if (last === undefined) return null
  const done = tryParseJson(last) === null ? last.trim() : null
  const events = (done === null ? frames : frames.slice(0, -1)).map(tryParseJson)
  if (events.length === 0 || events.some((event) => event === null)) return null
  return { kind: 'stream', raw, format, done, events: events.map((event) => event?.value) }
}

/** The proposal for a pasted response. All are null when nothing in it can be read; `unsure` has the reason. */
export type InferredFormat = {
  proposal: FormatInput | null
  /** The result that the proposal reads. */
  parsed: CanonicalResult | null
  /** The name of the built-in format that reads the response. */
  built_in: string | null
  /** For admins: the guesses and the missing parts. */
  unsure: string[]
}

const noProposal = (...unsure: string[]): InferredFormat => ({
  proposal: null,
  parsed: null,
  built_in: null,
  unsure,
})

const isEmpty = (value: unknown): boolean =>
  value === null || value === '' || (Array.isArray(value) && value.length === 0)

/** The result as a sample expects it, without the ids that Mason generated. */
const toExpected = (parsed: CanonicalResult, raw: string): Record<string, Json> => {
  const { tool_calls, job, embeddings, ...rest } = parsed
  const calls = tool_calls.map(({ id, ...call }) =>
    raw.includes(JSON.stringify(id)) ? { id, ...call } : call,
  )
  const all = { ...rest, tool_calls: calls, embedding: embeddings, job_id: job?.id, status: job?.status }
  return Object.fromEntries(
    Object.entries(all).filter(([, value]) => value !== undefined && !isEmpty(value)),
  ) as Record<string, Json>
}

const withSample = (format: FormatInput, { raw }: PastedResponse, parsed: CanonicalResult): FormatInput => ({
  ...format,
  samples: [{ raw: raw as Json, expected: toExpected(parsed, JSON.stringify(raw)) }],
})

/** How much a format reads in a response: one for each part and each count. */
const scoreResult = ({ usage, job, ...parts }: CanonicalResult): number =>
  Object.values(parts).filter((part) => !isEmpty(part)).length +
  Object.values(usage ?? {}).filter((count) => count > 0).length +
  (job === null ? 0 : 1)

const hasCounts = (raw: unknown): boolean =>
  /tokens?(_?count)?"\s*:\s*[1-9]|_eval_count"/i.test(JSON.stringify(raw) ?? '')

/** The built-in format that reads most, unless it misses token counts. */
const recognizeBuiltIn = (pasted: PastedResponse, category: string | undefined): InferredFormat | null => {
  const expectsUsage = hasCounts(pasted.kind === 'whole' ? pasted.raw : pasted.events)
  const readers = builtInFormats()
    .filter((format) => category === undefined || format.category === category)
    .filter((format) => pasted.kind === 'whole' || format.stream?.format === pasted.format)
    .flatMap((format) => {
      const tested = testFormat(format, pasted.raw)
      if (!tested.ok || (expectsUsage && tested.parsed.usage === null)) return []
      return [{ format, parsed: tested.parsed, score: scoreResult(tested.parsed) }]
    })
    .toSorted((a, b) => b.score - a.score)
  const [best] = readers
  if (best === undefined || best.score < 2) return null
  const { format, parsed } = best
  const proposal = withSample({ ...format, name: `${format.name} (copy)` }, pasted, parsed)
  const unsure = [`the built-in format ${format.name} reads this as it is: there is no need for another one`]
  return { proposal, parsed, built_in: format.name, unsure }
}

const doneWords = ['SUCCESS', 'SUCCEEDED', 'COMPLETED', 'DONE', 'FINISHED', 'READY']
const failedWords = ['FAIL', 'FAILED', 'FAILURE', 'ERROR', 'CANCELED', 'CANCELLED', 'EXPIRED', 'UNKNOWN']
const matchCase = (words: string[], like: string): string[] =>
  like === like.toLowerCase() ? words.map((word) => word.toLowerCase()) : words

const proposePoll = (status: string): PollFormat => ({
  path: '/tasks/{{job_id}}',
  method: 'GET',
  interval_ms: 5000,
  done: matchCase(doneWords, status),
  failed: matchCase(failedWords, status),
})

const examplePaths: Readonly<Record<string, string>> = {
  video:
    'video.url || video_url || videos[0].url || output.video_url || result.video_url || result.video.url',
  images: 'images || data[].url || output.images || result.images',
}

const propose = (
  pasted: PastedResponse,
  category: string | undefined,
): { format: FormatInput; unsure: string[] } => {
  const documents = pasted.kind === 'whole' ? [pasted.raw] : pasted.events
  const guessed = guessPaths(documents, category)
  const { paths } = guessed
  const unsure = [...guessed.unsure]
  const format: FormatInput = { name: 'a new format', category: guessed.category, paths, samples: [] }
  if (pasted.kind === 'stream') {
    const done = pasted.done === null ? {} : { done: pasted.done }
    format.stream = { format: pasted.format, ...done, paths }
    unsure.push('paths: this is a stream, so the paths of a whole response are only those of an event')
  } else if (paths.job_id !== undefined && paths.status !== undefined) {
    const status = testFormat({ ...format, poll: proposePoll('') }, pasted.raw).parsed?.job?.status ?? ''
    format.poll = proposePoll(status)
    unsure.push('poll: the path, and the words for done and failed, are only examples; see the vendor’s docs')
    const [result] = listRequiredPaths(format.category)
    if (result !== undefined && paths[result] === undefined && examplePaths[result] !== undefined) {
      format.paths = { ...paths, [result]: examplePaths[result] }
      unsure.push(`${result}: it is not there yet; its path is only an example`)
    }
  } else if (listRequiredPaths(format.category).includes('text')) {
    unsure.push('stream: paste a streamed response too if the vendor can stream')
  }
  return { format, unsure }
}

const isFlat = (value: unknown): boolean => typeof value !== 'object' || value === null

/** `{error: …}`, or a code with a message and nothing else that could be a response. */
const isError = (raw: unknown): boolean =>
  isJsonObject(raw) &&
  (readErrorValue(raw.error ?? null) !== null ||
    (Object.hasOwn(raw, 'code') && Object.hasOwn(raw, 'message') && Object.values(raw).every(isFlat)))

/** A format for a pasted response (JSON, its text, or the text of a stream) that reads it; no proposal when none does. */
export const inferFormat = (raw: unknown, category?: string): InferredFormat => {
  const pasted = readPastedResponse(raw)
  if (pasted === null)
    return noProposal('this is neither JSON nor the text of a stream of server-sent events or JSON lines')
  const builtIn = recognizeBuiltIn(pasted, category)
  if (builtIn !== null) return builtIn
  if (pasted.kind === 'whole' && isError(pasted.raw))
    return noProposal('this response is an error: paste a successful one')
  const { format, unsure } = propose(pasted, category)
  const [error] = checkFormat(format)
  if (error !== undefined) return noProposal(`${error.pointer}: ${error.detail}`, ...unsure)
  const tested = testFormat(format, pasted.raw)
  if (!tested.ok) return noProposal(tested.detail, ...unsure)
  return {
    proposal: withSample(format, pasted, tested.parsed),
    parsed: tested.parsed,
    built_in: null,
    unsure,
  }
}
