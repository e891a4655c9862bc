import type { JobsOptions } from 'bullmq'
import fc from 'fast-check'
import { z } from 'zod'
import { signJob } from '../../src/infra/queue/signed-jobs.ts'
import { runRequestSchema } from '../../src/state/run-request.ts'
import { type MalformedBody, malformedBodies } from './bodies.ts'
import { shapedBodies } from './shapes.ts'

/** A job or a wake-up as its bytes lie in Redis, and what has to become of it; `either`: what is spoilt may do no harm. */
export type FuzzJob = {
  queue: 'mason-runs' | 'wake-ups'
  what: string
  name: string
  /** Follows the number of the job. */
  idTail: string
  data: Buffer
  options: JobsOptions
  fate: 'admitted' | 'rejected' | 'either'
  /** The field the refusal has to name. */
  at?: string
}

const day = 86_400_000
/** Not due for a day: that it was admitted is what counts, and not the work. */
const valid = { prompt: 'What is 2 + 2?', user_id: 'u1', delay_ms: day }
const wakeUp = { run_id: 'run_x', business_id: 'default' }

const plain = fc.constant<JobsOptions>({})
/** Options by which a sender means to rule over how his job is tried and kept. */
const oddOptions: fc.Arbitrary<JobsOptions> = fc.constantFrom(
  { attempts: 1, removeOnComplete: false, removeOnFail: false },
  { attempts: 0 },
  { attempts: -3, backoff: -1 },
  { attempts: 3, backoff: { type: 'nothing we know', delay: 1e9 } },
  { priority: 1 },
  { priority: 2_000_000 },
  { lifo: true },
  { keepLogs: 0, stackTraceLimit: 0 },
  { removeOnComplete: { age: 1e9, count: 1e9 } },
)
const optionsOf = fc.oneof({ weight: 4, arbitrary: plain }, { weight: 1, arbitrary: oddOptions })

const oddTail = fc.oneof(
  fc.constantFrom('\u0000', ' ', '\n', '/../..', '💩', '"', '%00', 'x'.repeat(300), '__proto__'),
  fc.string({ unit: 'binary', maxLength: 20 }).map((text) => text.toWellFormed().replaceAll(':', ';')),
)
const tail = fc.oneof({ weight: 6, arbitrary: fc.constant('') }, { weight: 1, arbitrary: oddTail })
const oddName = fc.constantFrom('', 'Run', 'walk', 'run ', '__proto__', 'run\u0000', '💩', 'x'.repeat(10_000))

const veryDeep: MalformedBody = {
  what: 'lists in lists, 100,000 deep',
  bytes: Buffer.from(`{"metadata":${'['.repeat(100_000)}${']'.repeat(100_000)}}`),
}
const spoiltOf = (body: Record<string, unknown>): fc.Arbitrary<MalformedBody> =>
  fc.oneof({ weight: 60, arbitrary: malformedBodies(body) }, { weight: 1, arbitrary: fc.constant(veryDeep) })

const { $defs = {}, ...jobSchema } = z.toJSONSchema(runRequestSchema, { io: 'input' })
/** A request with one field at or past a limit of its schema, plain or signed; no secret is set, so any signature will do. */
const shapedOf: fc.Arbitrary<MalformedBody> = fc
  .record({
    shaped: shapedBodies(valid, jobSchema, { components: { schemas: $defs } }),
    isSigned: fc.boolean(),
  })
  .map(({ shaped: { what, value, at }, isSigned }) => ({
    what: isSigned ? `signed: ${what}` : what,
    bytes: Buffer.from(JSON.stringify(isSigned ? signJob('any id', value, 'any secret') : value)),
    ...(at !== undefined && { at }),
  }))

const spoiltRun = fc
  .record({ spoilt: fc.oneof(spoiltOf(valid), shapedOf), idTail: tail, options: optionsOf })
  .map(({ spoilt: { what, bytes, at }, idTail, options }): FuzzJob => {
    // an id that cannot be kept is the one error that is reported
    const named = at !== undefined && /^[^\0]{0,200}$/.test(idTail) ? { at } : {}
    const known = { fate: at === undefined ? ('either' as const) : ('rejected' as const), ...named }
    return { queue: 'mason-runs', what, name: 'run', idTail, data: bytes, options, ...known }
  })

const misnamed = fc.record({ name: oddName, options: optionsOf }).map(
  (odd): FuzzJob => ({
    ...odd,
    queue: 'mason-runs',
    what: 'another name',
    idTail: '',
    data: Buffer.from(JSON.stringify(valid)),
    fate: 'rejected',
  }),
)

const good = fc.record({ options: optionsOf, business: fc.nat({ max: 20 }) }).map(
  ({ options, business }): FuzzJob => ({
    queue: 'mason-runs',
    what: 'a valid job',
    name: 'run',
    idTail: '',
    data: Buffer.from(JSON.stringify({ ...valid, business_id: `b${business}` })),
    options,
    fate: 'admitted',
  }),
)

const spoiltWakeUp = spoiltOf(wakeUp).map(
  ({ what, bytes }): FuzzJob => ({
    queue: 'wake-ups',
    what: `a wake-up: ${what}`,
    name: '',
    idTail: '',
    data: bytes,
    options: {},
    fate: 'either',
  }),
)

export const jobs: fc.Arbitrary<FuzzJob> = fc.oneof(
  { weight: 12, arbitrary: spoiltRun },
  { weight: 1, arbitrary: misnamed },
  { weight: 3, arbitrary: good },
  { weight: 4, arbitrary: spoiltWakeUp },
)
