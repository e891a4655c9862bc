import type { FormatInput, PollFormat } from '../../state/registry/response-format.ts'
import type { Json } from '../../state/runtime-state.ts'
import type { CanonicalResult } from '../models/ports.ts'
import { builtInFormats } from './built-in.ts'
import { checkFormat } from './check.ts'
import { guessPaths } from './infer/guess.ts'
import { isObject } from './infer/nodes.ts'
import { type Pasted, readPasted } from './infer/read-pasted.ts'
import { neededBy } from './need.ts'
import { errorOf } from './parts.ts'
import { testFormat } from './test.ts'

/** What is proposed for a pasted answer. All are null where nothing in it can be read; `unsure` says why. */
export type Inferred = {
  proposal: FormatInput | null
  /** What the proposal reads in what was pasted. */
  parsed: CanonicalResult | null
  /** The name of the built-in format that reads it as it is. */
  built_in: string | null
  /** For people: what was guessed, and what is missing. */
  unsure: string[]
}

const nothing = (...unsure: string[]): Inferred => ({ proposal: null, parsed: null, built_in: null, unsure })

const isEmpty = (value: unknown): boolean =>
  value === null || value === '' || (Array.isArray(value) && value.length === 0)

/** What was read, as a sample expects it: ids that we made up ourselves are left out. */
const expectedOf = (parsed: CanonicalResult, raw: string): Record<string, Json> => {
  const { tool_calls, job, embeddings, ...rest } = parsed
  const calls = tool_calls.map(({ id, ...call }) =>
    raw.includes(JSON.stringify(id)) ? { id, ...call } : call,
  )
  const all = { ...rest, tool_calls: calls, embedding: embeddings, job_id: job?.id, status: job?.status }
  return Object.fromEntries(
    Object.entries(all).filter(([, value]) => value !== undefined && !isEmpty(value)),
  ) as Record<string, Json>
}

const withSample = (format: FormatInput, { raw }: Pasted, parsed: CanonicalResult): FormatInput => ({
  ...format,
  samples: [{ raw: raw as Json, expected: expectedOf(parsed, JSON.stringify(raw)) }],
})

/** How much a format reads in an answer: every part and every count that is found is one. */
const worthOf = ({ usage, job, ...parts }: CanonicalResult): number =>
  Object.values(parts).filter((part) => !isEmpty(part)).length +
  Object.values(usage ?? {}).filter((count) => count > 0).length +
  (job === null ? 0 : 1)

const hasCounts = (raw: unknown): boolean =>
  /tokens?(_?count)?"\s*:\s*[1-9]|_eval_count"/i.test(JSON.stringify(raw) ?? '')

/** The built-in format that reads most, if it leaves nothing important unread. */
const recognise = (pasted: Pasted, category: string | undefined): Inferred | null => {
  const counted = hasCounts(pasted.kind === 'whole' ? pasted.raw : pasted.events)
  const readers = builtInFormats()
    .filter((format) => category === undefined || format.category === category)
    .filter((format) => pasted.kind === 'whole' || format.stream?.format === pasted.format)
    .flatMap((format) => {
      const tested = testFormat(format, pasted.raw)
      if (!tested.ok || (counted && tested.parsed.usage === null)) return []
      return [{ format, parsed: tested.parsed, worth: worthOf(tested.parsed) }]
    })
    .toSorted((a, b) => b.worth - a.worth)
  const [best] = readers
  if (best === undefined || best.worth < 2) return null
  const { format, parsed } = best
  const proposal = withSample({ ...format, name: `${format.name} (copy)` }, pasted, parsed)
  const unsure = [`the built-in format ${format.name} reads this as it is: there is no need for another one`]
  return { proposal, parsed, built_in: format.name, unsure }
}

const doneWords = ['SUCCESS', 'SUCCEEDED', 'COMPLETED', 'DONE', 'FINISHED', 'READY']
const failedWords = ['FAIL', 'FAILED', 'FAILURE', 'ERROR', 'CANCELED', 'CANCELLED', 'EXPIRED', 'UNKNOWN']
const inCase = (words: string[], like: string): string[] =>
  like === like.toLowerCase() ? words.map((word) => word.toLowerCase()) : words

const proposedPoll = (status: string): PollFormat => ({
  path: '/tasks/{{job_id}}',
  method: 'GET',
  interval_ms: 5000,
  done: inCase(doneWords, status),
  failed: inCase(failedWords, status),
})

const somewhere: Readonly<Record<string, string>> = {
  video:
    'video.url || video_url || videos[0].url || output.video_url || result.video_url || result.video.url',
  images: 'images || data[].url || output.images || result.images',
}

const propose = (pasted: Pasted, category: string | undefined): { format: FormatInput; unsure: string[] } => {
  const documents = pasted.kind === 'whole' ? [pasted.raw] : pasted.events
  const guessed = guessPaths(documents, category)
  const { paths } = guessed
  const unsure = [...guessed.unsure]
  const format: FormatInput = { name: 'a new format', category: guessed.category, paths, samples: [] }
  if (pasted.kind === 'stream') {
    const done = pasted.done === null ? {} : { done: pasted.done }
    format.stream = { format: pasted.format, ...done, paths }
    unsure.push(
      'paths: this is a stream; how a whole answer looks was not to be seen, its paths are those of an event',
    )
  } else if (paths.job_id !== undefined && paths.status !== undefined) {
    const status = testFormat({ ...format, poll: proposedPoll('') }, pasted.raw).parsed?.job?.status ?? ''
    format.poll = proposedPoll(status)
    unsure.push(
      'poll: the path to ask at, and the words for done and failed, are only examples; see the vendor’s docs',
    )
    const [result] = neededBy(format.category)
    if (result !== undefined && paths[result] === undefined && somewhere[result] !== undefined) {
      format.paths = { ...paths, [result]: somewhere[result] }
      unsure.push(`${result}: it is not there yet; its path is only an example`)
    }
  } else if (neededBy(format.category).includes('text')) {
    unsure.push('stream: paste a streamed answer too if the vendor can stream')
  }
  return { format, unsure }
}

const isFlat = (value: unknown): boolean => typeof value !== 'object' || value === null

/** `{error: …}`, or a code with a message and nothing beside them that could be an answer. */
const isError = (raw: unknown): boolean =>
  isObject(raw) &&
  (errorOf(raw.error ?? null) !== null ||
    (Object.hasOwn(raw, 'code') && Object.hasOwn(raw, 'message') && Object.values(raw).every(isFlat)))

/** A format for an answer that an admin pasted: whole as JSON or as its text, or the text of a stream. Reads it, or proposes nothing. */
export const inferFormat = (raw: unknown, category?: string): Inferred => {
  const pasted = readPasted(raw)
  if (pasted === null)
    return nothing('this is neither JSON nor the text of a stream of server-sent events or JSON lines')
  const known = recognise(pasted, category)
  if (known !== null) return known
  if (pasted.kind === 'whole' && isError(pasted.raw))
    return nothing('this answer is an error, and says nothing of how a good one looks: paste a good one')
  const { format, unsure } = propose(pasted, category)
  const [fault] = checkFormat(format)
  if (fault !== undefined) return nothing(`${fault.pointer}: ${fault.detail}`, ...unsure)
  const tested = testFormat(format, pasted.raw)
  if (!tested.ok) return nothing(tested.detail, ...unsure)
  return {
    proposal: withSample(format, pasted, tested.parsed),
    parsed: tested.parsed,
    built_in: null,
    unsure,
  }
}
