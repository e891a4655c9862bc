import { setTimeout as timer } from 'node:timers/promises'
import { MasonError } from '../../src/state/errors.ts'
import type { Clock } from '../../src/state/ports/clock.ts'
import type { ModelRequest, Models } from '../../src/state/ports/models.ts'
import { ownText } from '../../src/state/provenance.ts'
import { type OpenAIOptions, openModels } from './one-server.ts'

/** The real clock, with a count of the sleeps that are not over: what is left after a call is a leak. */
export const createCountingClock = (): Clock & { sleeping(): number } => {
  let sleeping = 0
  return {
    now: () => new Date(),
    monotonicMs: () => performance.now(),
    sleep: async (ms, signal) => {
      sleeping += 1
      try {
        await timer(ms, undefined, signal === undefined ? {} : { signal })
      } catch (error) {
        throw signal?.aborted === true ? signal.reason : error
      } finally {
        sleeping -= 1
      }
    },
    sleeping: () => sleeping,
  }
}

/** Never reached by a healthy exchange on a slow machine. */
export const patient = { firstByteMs: 20_000, idleMs: 20_000, totalMs: 40_000 }
export const quickRetry = { attempts: 3, baseMs: 1, maxMs: 4 }

export const openTestModels = (
  options: Partial<OpenAIOptions> & { baseUrl: string },
): { models: Models; clock: ReturnType<typeof createCountingClock> } => {
  const clock = createCountingClock()
  const models = openModels({
    apiKey: 'sk-test-secret-0123456789',
    model: 'fake-model',
    clocks: patient,
    retry: quickRetry,
    clock,
    ...options,
  })
  return { models, clock }
}

export const ask = (more: Partial<ModelRequest> = {}): ModelRequest => ({
  role: 'planner',
  messages: [
    { role: 'system', content: ownText`You plan.` },
    { role: 'user', content: ownText`Say hello` },
  ],
  ...more,
})

/** The MasonError a call ended with. Throws when it succeeded or failed in another way. */
export const failureOf = async (call: Promise<unknown>): Promise<MasonError> => {
  const error = await call.then(
    () => new Error('the call succeeded'),
    (reason: unknown) => reason,
  )
  if (error instanceof MasonError) return error
  throw error
}

/** The same failure as admins see it in the log: with addresses, keys and the vendor's own words. */
export const wholeOf = ({ cause }: MasonError): MasonError => {
  if (cause instanceof MasonError) return cause
  throw new Error('nothing more is known of this failure')
}

export const never = (): AbortSignal => new AbortController().signal
