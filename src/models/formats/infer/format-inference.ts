import { isJsonObject } from '../../../infra/lib/json-text.ts'
import type { Json } from '../../../state/runtime-state.ts'
import type { CanonicalResult } from '../../ports/model-ports.ts'
import type { FormatInput, FormatSample, PollFormat, StreamFormat } from '../../schemas/response-format.ts'
import { builtInFormats } from '../built-in/built-in-formats.ts'
import { checkFormat } from '../format-check.ts'
import { splitFrames, testFormat } from '../format-test.ts'
import { listRequiredPaths } from '../required-paths.ts'
import { readErrorValue } from '../result-parts.ts'
import { guessPaths } from './path-guess.ts'

/** What an admin pasted: one response, or the events of a stream. */
type PastedResponse = { raw: unknown; documents: unknown[]; stream: Omit<StreamFormat, 'paths'> | null }

const tryParseJson = (text: string): { value: unknown } | null => {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return null
  }
}

/** Null when the text is neither JSON nor a stream. */
const readPastedResponse = (raw: unknown): PastedResponse | null => {
  const whole = typeof raw === 'string' ? tryParseJson(raw) : { value: raw }
  if (typeof raw !== 'string' || typeof whole?.value === 'object')
    return { raw: whole?.value, documents: [whole?.value], stream: null }
  const format = /^[ \t]*(?:data|event|id|retry|):/m.test(raw) ? 'sse' : 'ndjson'
  const frames = splitFrames(raw, format)
  const last = frames.at(-1)
  if (last === undefined) return null
  const isDone = tryParseJson(last) === null
  const events = (isDone ? frames.slice(0, -1) : frames).map(tryParseJson)
  if (events.length === 0 || events.includes(null)) return null
  return {
    raw,
    documents: events.map((event) => event?.value),
    stream: { format, ...(isDone && { done: last.trim() }) },
  }
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

const nothing = { proposal: null, parsed: null, built_in: null }
const noProposal = (...unsure: string[]): InferredFormat => ({ ...nothing, unsure })

const isEmpty = (value: unknown): boolean =>
  value == null || value === '' || (Array.isArray(value) && value.length === 0)

/** The result as a sample expects it, without the ids that Mason generated. */
const toExpected = (parsed: CanonicalResult, raw: string) => {
  const { tool_calls, job, embeddings, ...rest } = parsed
  const calls = tool_calls.map(({ id, ...call }) =>
    raw.includes(JSON.stringify(id)) ? { id, ...call } : call,
  )
  const all = { ...rest, tool_calls: calls, embedding: embeddings, job_id: job?.id, status: job?.status }
  const expected = Object.entries(all).filter(([, value]) => !isEmpty(value))
  return Object.fromEntries(expected) as FormatSample['expected']
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
  const expectsUsage = hasCounts(pasted.documents)
  const [best] = builtInFormats()
    .filter((format) => category === undefined || format.category === category)
    .filter(({ stream }) => pasted.stream === null || stream?.format === pasted.stream.format)
    .flatMap((format) => {
      const tested = testFormat(format, pasted.raw)
      if (!tested.ok || (expectsUsage && tested.parsed.usage === null)) return []
      return [{ format, parsed: tested.parsed, score: scoreResult(tested.parsed) }]
    })
    .toSorted((a, b) => b.score - a.score)
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
  const { paths, unsure, ...guessed } = guessPaths(pasted.documents, category)
  const format: FormatInput = { name: 'a new format', category: guessed.category, paths, samples: [] }
  if (pasted.stream !== null) {
    format.stream = { ...pasted.stream, paths }
    unsure.push('paths: this is a stream, so the paths of a whole response are only those of an event')
  } else if (paths.job_id !== undefined && paths.status !== undefined) {
    const status = testFormat({ ...format, poll: proposePoll('') }, pasted.raw).parsed?.job?.status ?? ''
    format.poll = proposePoll(status)
    unsure.push('poll: the path, and the words for done and failed, are only examples; see the vendor’s docs')
    const [result = ''] = listRequiredPaths(format.category)
    if (!Object.hasOwn(paths, result) && examplePaths[result] !== undefined) {
      format.paths = { ...paths, [result]: examplePaths[result] }
      unsure.push(`${result}: it is not there yet; its path is only an example`)
    }
  } else if (listRequiredPaths(format.category).includes('text')) {
    unsure.push('stream: paste a streamed response too if the vendor can stream')
  }
  return { format, unsure }
}

/** `{error: …}`, or a code with a message and nothing else that could be a response. */
const isError = (raw: unknown): boolean =>
  isJsonObject(raw) &&
  (readErrorValue(raw.error ?? null) !== null ||
    (Object.hasOwn(raw, 'code') &&
      Object.hasOwn(raw, 'message') &&
      !Object.values(raw).some((value) => value && typeof value === 'object')))

/** A format for a pasted response (JSON, its text, or the text of a stream) that reads it; no proposal when none does. */
export const inferFormat = (raw: unknown, category?: string): InferredFormat => {
  const pasted = readPastedResponse(raw)
  if (pasted === null)
    return noProposal('this is neither JSON nor the text of a stream of server-sent events or JSON lines')
  const builtIn = recognizeBuiltIn(pasted, category)
  if (builtIn !== null) return builtIn
  if (pasted.stream === null && isError(pasted.raw))
    return noProposal('this response is an error: paste a successful one')
  const { format, unsure } = propose(pasted, category)
  const [error] = checkFormat(format)
  if (error !== undefined) return noProposal(`${error.pointer}: ${error.detail}`, ...unsure)
  const tested = testFormat(format, pasted.raw)
  if (!tested.ok) return noProposal(tested.detail, ...unsure)
  const { parsed } = tested
  return { proposal: withSample(format, pasted, parsed), parsed, built_in: null, unsure }
}
