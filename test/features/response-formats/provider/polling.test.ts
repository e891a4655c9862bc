import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { videoSubmitPoll } from '../../../../src/features/response-formats/built-in/video-submit-poll.ts'
import { call, canary, errorOf, modelOf, openCaller, resultOf } from '../../../support/http-call.ts'
import { startVendor, type VendorAnswer } from '../../../support/http-vendor.ts'

const format = {
  ...videoSubmitPoll,
  poll: {
    path: '/async-result/{{job_id}}',
    method: 'GET' as const,
    interval_ms: 2,
    done: ['SUCCESS'],
    failed: ['FAIL'],
  },
}
const submitted: VendorAnswer = { body: { id: 'job 1', model: 'cogvideox-3', task_status: 'PROCESSING' } }
const working: VendorAnswer = { body: { model: 'cogvideox-3', task_status: 'PROCESSING' } }
const done: VendorAnswer = {
  body: {
    task_status: 'SUCCESS',
    video_result: [{ url: 'https://v.example.com/1.mp4', cover_image_url: 'x' }],
  },
}
const submission = z.strictObject({ model: z.literal('upstream-1'), prompt: z.literal('a cat') })

/** A vendor that checks what it is asked and answers in this order; the last answer repeats. */
const startVideoVendor = (...answers: VendorAnswer[]) =>
  startVendor((request, nth) => {
    expect(request.headers.authorization).toBe(`Bearer ${canary}`)
    if (nth === 1) {
      expect(`${request.method} ${request.path}`).toBe('POST /videos/generations')
      submission.parse(request.body)
    } else {
      expect(`${request.method} ${request.path}`).toBe('GET /async-result/job%201')
      expect(request.text).toBe('')
    }
    return answers[Math.min(nth, answers.length) - 1] ?? done
  })
const ask = { prompt: 'a cat', messages: [] }

describe('an answer that comes later', () => {
  it('is asked for until it is there', async () => {
    await using vendor = await startVideoVendor(submitted, working, working, done)
    const result = resultOf(await call({ model: modelOf(format, vendor.url), ask }))
    expect(result).toMatchObject({
      video: { url: 'https://v.example.com/1.mp4' },
      job: { status: 'SUCCESS' },
    })
    expect(vendor.requests).toHaveLength(4)
  })

  it('may be there at once', async () => {
    await using vendor = await startVideoVendor(done)
    expect(resultOf(await call({ model: modelOf(format, vendor.url), ask })).video).not.toBeNull()
    expect(vendor.requests).toHaveLength(1)
  })

  it('may fail, and is not asked for again', async () => {
    await using vendor = await startVideoVendor(submitted, { body: { task_status: 'FAIL' } })
    const { error } = errorOf(await call({ model: modelOf(format, vendor.url), ask }))
    expect(error).toMatchObject({ code: 'model_unavailable', retry: false, what: 'ended its job as FAIL' })
    expect(vendor.requests).toHaveLength(2)
  })

  it('survives transient errors of polls', async () => {
    const limited = { status: 429, headers: { 'retry-after-ms': '1' }, body: {} }
    await using vendor = await startVideoVendor(submitted, { status: 500, body: {} }, limited, working, done)
    expect(resultOf(await call({ model: modelOf(format, vendor.url), ask })).video).not.toBeNull()
  })

  it('is given up after five failed polls in a row', async () => {
    await using vendor = await startVideoVendor(submitted, { status: 503, body: {} })
    const { error } = errorOf(await call({ model: modelOf(format, vendor.url), ask }))
    expect(error).toMatchObject({ code: 'model_unavailable', status: 503 })
    expect(vendor.requests).toHaveLength(6)
  })

  it('is given up at once when a poll is refused', async () => {
    await using vendor = await startVideoVendor(submitted, { status: 404, body: {} })
    expect(errorOf(await call({ model: modelOf(format, vendor.url), ask })).error.status).toBe(404)
    expect(vendor.requests).toHaveLength(2)
  })

  it('is given up at the time of the whole call', async () => {
    await using vendor = await startVideoVendor(submitted, working)
    const { error } = errorOf(await call({ model: modelOf(format, vendor.url), ask, totalMs: 300 }))
    expect(error).toMatchObject({ code: 'model_timeout', retry: false })
  })

  it('without the name of a job cannot be asked for', async () => {
    await using vendor = await startVideoVendor(working)
    const { error } = errorOf(await call({ model: modelOf(format, vendor.url), ask }))
    expect(error).toMatchObject({ code: 'model_bad_reply', what: 'named no job to ask for' })
  })

  it('under a name that would leave its address is not asked for', async () => {
    await using vendor = await startVideoVendor({ body: { id: '..', task_status: 'PROCESSING' } })
    const { error } = errorOf(await call({ model: modelOf(format, vendor.url), ask }))
    expect(error.code).toBe('model_bad_request')
    expect(vendor.requests).toHaveLength(1)
  })

  it('is no longer polled once the caller has aborted, between two polls or within one', async () => {
    for (const second of [working, { pieces: [], ending: 'hang' } satisfies VendorAnswer]) {
      const controller = new AbortController()
      const reason = new Error('no longer wanted')
      await using vendor = await startVendor((_, nth) => {
        if (nth === 1) return submitted
        controller.abort(reason)
        return second
      })
      await using caller = openCaller()
      const calling = caller.call({ model: modelOf(format, vendor.url), ask, signal: controller.signal })
      await expect(calling).rejects.toBe(reason)
      expect(caller.clock.sleeping()).toBe(0)
      expect(vendor.requests).toHaveLength(2)
    }
  })
})
