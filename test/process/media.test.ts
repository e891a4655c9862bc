// asserts: invariants

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openaiVideos } from '../../src/features/response-formats/built-in/openai-media.ts'
import { formatInputSchema } from '../../src/models/schemas/response-format.ts'
import { deferred } from '../support/deferred.ts'
import { type MediaVendor, startMediaVendor } from '../support/media-vendor.ts'
import { serversMissing } from '../support/processes.ts'
import { calling, say } from '../support/script.ts'
import { addVendor } from '../support/vendors.ts'
import { expectWhole, onServers, useWorld } from './servers.ts'

describe.skipIf(serversMissing !== null)(onServers('a worker that is killed while a video is made'), () => {
  const world = useWorld()
  let vendor: MediaVendor

  beforeAll(async () => {
    if (serversMissing) return
    vendor = await startMediaVendor()
    const quick = { ...openaiVideos, name: 'quick', poll: { ...openaiVideos.poll, interval_ms: 20 } }
    const { id } = await world.admin.registry.formats.create({}, formatInputSchema.parse(quick))
    await addVendor(world, 'studio', vendor.baseUrl, {
      keys: ['main'],
      models: ['filmer'],
      model: { category: 'text-to-video', response_format_id: id },
    })
  })
  afterAll(() => vendor?.[Symbol.asyncDispose]())

  test('another worker polls the stored job to its end and never submits again', async () => {
    say(world.model, {
      planner: [calling(['generate_video', { prompt: 'a boat', seconds: 8 }]), { text: 'Here it is.' }],
      reflection: [{ text: '{"is_sufficient":true}' }],
    })
    vendor.pollsLeft = Number.POSITIVE_INFINITY
    const polled = deferred<void>()
    let polls = 0
    vendor.onRequest = ({ method }) => {
      polls += method === 'GET' ? 1 : 0
      if (polls === 3) polled.resolve()
    }
    const first = await world.startWorker()
    const runId = await world.submit('Film a boat')
    const followed = world.follow(runId)
    await polled.promise
    first.signal('SIGKILL')
    await first.exited
    const before = polls
    await world.startWorker()
    await world.lapse(runId)
    vendor.pollsLeft = 3
    const { run, nodes } = await world.finish(runId)
    expect(run).toMatchObject({ status: 'completed', answer: 'Here it is.' })
    expect(nodes.filter((node) => node === 'generate_video')).toHaveLength(1)
    expect(vendor.requests.filter(({ method }) => method === 'POST')).toHaveLength(1)
    expect(polls).toBeGreaterThan(before)
    expect(new Set(vendor.requests.slice(1).map(({ path }) => path))).toEqual(
      new Set(['/v1/videos/video_1', '/v1/videos/video_1/content']),
    )
    expect(world.model.requests('planner')).toHaveLength(2)
    expectWhole(await followed.ended)
  })
})
