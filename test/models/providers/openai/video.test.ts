import { expect, test } from 'vitest'
import { openEgress } from '../../../../src/infra/egress/egress.ts'
import { silentLog } from '../../../../src/infra/lib/silent-log.ts'
import { createOpenAIProvider } from '../../../../src/models/providers/openai/openai-provider.ts'
import type { Clock } from '../../../../src/state/ports/clock.ts'
import { askOf, keyOf, modelOf } from '../../../support/http-call.ts'
import { mp4, startMediaVendor } from '../../../support/media-vendor.ts'
import { createCountingClock, never } from '../../../support/models.ts'
import { responseFormats } from '../../../support/response-formats.ts'

/** The waits between polls take no time; all other timers are real. */
const createPollClock = (): Clock & { waitedMs(): number } => {
  const real = createCountingClock()
  const pollMs = 5000
  let waitedMs = 0
  return {
    now: real.now,
    monotonicMs: () => real.monotonicMs() + waitedMs,
    async sleep(ms, signal) {
      if (ms !== pollMs) return real.sleep(ms, signal)
      waitedMs += ms
    },
    waitedMs: () => waitedMs,
  }
}

test('a video that takes 60 seconds is polled every 5 seconds to its end, and submitted once', async () => {
  await using vendor = await startMediaVendor()
  await using egress = openEgress()
  const clock = createPollClock()
  vendor.onRequest = () => {
    vendor.pollsLeft = clock.waitedMs() < 60_000 ? 1 : 0
  }
  const provider = createOpenAIProvider({ egress, formats: responseFormats, clock, log: silentLog })
  const model = { ...modelOf(null, vendor.baseUrl, { protocol: 'openai' }), category: 'text-to-video' }
  const request = {
    model,
    key: keyOf(),
    ask: askOf({ role: 'text-to-video', messages: [], prompt: 'a boat', parameters: { seconds: 8 } }),
    endsAtMs: clock.monotonicMs() + 30 * 60_000,
    usedIds: [],
    onDelta: () => {},
  }
  const submitted = await provider.send({ ...request, beforeSubmit: () => {} }, never())
  if (!submitted.ok) throw new Error(submitted.error.what)
  expect(submitted.result).toMatchObject({ job: { id: 'video_1', status: 'queued' }, video: null })
  expect(vendor.requests).toHaveLength(1)
  let outcome = await provider.poll?.(request, 'video_1', never())
  for (; outcome && 'againInMs' in outcome; outcome = await provider.poll?.(request, 'video_1', never()))
    await clock.sleep(outcome.againInMs, never())
  if (!outcome?.ok) throw new Error('the job has no result')
  const { video } = outcome.result
  expect(video).toEqual({ base64: mp4.toString('base64'), mime_type: 'video/mp4' })
  expect(clock.waitedMs()).toBe(60_000)
  expect(vendor.to('/video_1')).toHaveLength(13)
  expect(vendor.to('/content')).toHaveLength(1)
  expect(vendor.requests.filter(({ method }) => method === 'POST')).toHaveLength(1)
})
