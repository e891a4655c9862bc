import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/infra/lib/system-clock.ts'
import type { Clock } from '../../../src/state/ports/clock.ts'
import { waitedFor } from '../../support/clock.ts'
import { type FakeModel, type FakeReply, startFakeModel } from '../../support/fake-model/fake-model.ts'
import { ask, failureOf, never, openTestModels, patient, quickRetry, wholeOf } from '../../support/models.ts'
import type { OpenAIOptions } from '../../support/one-server.ts'

let server: FakeModel
beforeEach(async () => {
  server = await startFakeModel()
})
afterEach(async () => {
  await server.close()
})

const call = (steps: readonly FakeReply[], options: Partial<OpenAIOptions> = {}, signal = never()) => {
  server.script({ planner: steps })
  return openTestModels({ baseUrl: server.baseUrl, ...options }).models.call(ask(), signal)
}
const failWith = (failure: FakeReply['failure'], options: Partial<OpenAIOptions> = {}) =>
  failureOf(call([{ text: 'abcdef', ...(failure === undefined ? {} : { failure }) }], options))

describe('waiting between attempts', () => {
  const gaps = (): number[] =>
    server
      .requests()
      .slice(1)
      .map((one, n) => one.atMs - (server.requests()[n]?.atMs ?? 0))

  it.each([
    ['retry-after', '0.12'],
    ['retry-after-ms', '120'],
  ])('lasts as long as %s asks', async (name, value) => {
    const limited = { failure: { status: 429, headers: { [name]: value } } }
    await call([limited, { text: 'fine' }])
    expect(gaps()[0]).toBeGreaterThanOrEqual(118)
  })

  it('does not begin when the run has no time left', async () => {
    server.script({ planner: [{ failure: { status: 503 } }] })
    const { models } = openTestModels({ baseUrl: server.baseUrl })
    const { code } = await failureOf(models.call({ ...ask(), timeLeftMs: 0 }, never()))
    expect([code, server.requests().length]).toEqual(['model_unavailable', 1])
  })

  it('grows, with full jitter, up to a limit', async () => {
    const retry = { attempts: 4, baseMs: 40, maxMs: 60 }
    await failWith({ status: 503 }, { retry, random: () => 1 })
    const waits = gaps()
    expect(waits).toHaveLength(3)
    expect(waits[0]).toBeGreaterThanOrEqual(39)
    expect(waits[2]).toBeGreaterThanOrEqual(59)
    const slept: number[] = []
    const clock: Clock = {
      ...systemClock,
      sleep(ms, signal) {
        slept.push(ms)
        return systemClock.sleep(ms, signal)
      },
    }
    await failWith({ status: 503 }, { retry, random: () => 0, clock })
    // a millisecond is added, for timers may ring early; the other sleeps are those of the clocks
    expect(slept.filter((ms) => ms < 1000)).toEqual([1, 1, 1])
  })

  it('does not begin when the time of the call would run out in it', async () => {
    const error = await failWith({ status: 429, headers: { 'retry-after': '3600' } })
    expect(error).toMatchObject({
      code: 'model_rate_limited',
      detail: { status: 429, attempts: 1, retry_after_ms: 3_600_000 },
    })
  })

  it('stops when the caller aborts', async () => {
    const controller = new AbortController()
    const reason = new Error('cancelled by the user')
    const limited = { failure: { status: 429, headers: { 'retry-after': '20' } } }
    const result = call([limited], {}, controller.signal)
    await server.received(1)
    controller.abort(reason)
    await expect(result).rejects.toBe(reason)
  })
})

describe('the clocks', () => {
  const short = { firstByteMs: 250, idleMs: 250, totalMs: 20_000 }

  it.each(['stall_headers', 'stall_body', 'stall_after_first_chunk'] as const)(
    'end a %s',
    async (failure) => {
      const waited = waitedFor()
      const error = await failWith(failure, { clocks: short, retry: { ...quickRetry, attempts: 2 } })
      expect(error).toMatchObject({ code: 'model_timeout', detail: { attempts: 2 } })
      expect(wholeOf(error).message).toMatch(/sent nothing for 250 ms|stopped sending for 250 ms/)
      expect(waited(490)).toBe(true)
    },
  )

  it('time the body by the idle clock although the first byte may take longer', async () => {
    const clocks = { firstByteMs: 30_000, idleMs: 200, totalMs: 30_000 }
    const error = await failWith('stall_after_first_chunk', { clocks, retry: { ...quickRetry, attempts: 1 } })
    expect(wholeOf(error).message).toContain('stopped sending for 200 ms')
  })

  it.each(['stall_headers', 'stall_body', 'stall_after_first_chunk'] as const)(
    'end the call with all its retries by the total: %s',
    async (failure) => {
      const clocks = { firstByteMs: 200, idleMs: 200, totalMs: 500 }
      const error = await failWith(failure, { clocks, retry: { attempts: 100, baseMs: 1, maxMs: 2 } })
      expect(error.code).toBe('model_timeout')
      // 500 ms are too few for a fourth attempt of 200 ms
      expect(server.requests().length).toBeLessThanOrEqual(3)
    },
  )

  it('end a server that only keeps the connection alive', async () => {
    const chatty = createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const timer = setInterval(() => response.write(': still here\n\n'), 20)
      response.once('close', () => clearInterval(timer))
    })
    await new Promise<void>((resolve) => void chatty.listen(0, '127.0.0.1', resolve))
    const { port } = chatty.address() as AddressInfo
    const clocks = { firstByteMs: 20_000, idleMs: 20_000, totalMs: 600 }
    const { models } = openTestModels({ baseUrl: `http://127.0.0.1:${port}/v1`, clocks })
    const error = await failureOf(models.call(ask(), never()))
    expect(error).toMatchObject({ code: 'model_timeout', detail: { attempts: 1 } })
    expect(wholeOf(error).message).toContain('no full reply within 600 ms')
    chatty.closeAllConnections()
    await new Promise((resolve) => void chatty.close(resolve))
  })

  it('end a fetch that ignores its signal', async () => {
    const clocks = { firstByteMs: 100, idleMs: 100, totalMs: 20_000 }
    const fetch = () => new Promise<Response>(() => {})
    expect(await failureOf(call([], { clocks, fetch }))).toMatchObject({ code: 'model_timeout' })
  })
})

describe('an abort', () => {
  it.each(['stall_headers', 'stall_body', 'stall_after_first_chunk'] as const)(
    'rejects with its reason at once, and closes the connection: %s',
    async (failure) => {
      const controller = new AbortController()
      const reason = { why: 'lease lost' }
      const result = call([{ text: 'abc', failure }], { clocks: patient }, controller.signal)
      await server.received(1)
      controller.abort(reason)
      await expect(result).rejects.toBe(reason)
      await expect.poll(() => server.open()).toBe(0)
    },
  )

  it('before the call sends nothing', async () => {
    const reason = new Error('too late')
    await expect(call([], {}, AbortSignal.abort(reason))).rejects.toBe(reason)
    expect(server.requests()).toEqual([])
  })

  it('frees a held reply', async () => {
    const controller = new AbortController()
    const result = call([{ hold: true }], {}, controller.signal)
    await server.received(1)
    await expect.poll(() => server.held()).toBe(1)
    controller.abort()
    await expect(result).rejects.toMatchObject({ name: 'AbortError' })
    await expect.poll(() => server.held()).toBe(0)
  })
})
