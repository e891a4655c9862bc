// backends: either

import { createHash } from 'node:crypto'
import { beforeEach, describe, expect } from 'vitest'
import { openaiVideos } from '../../../src/features/response-formats/built-in/openai-media.ts'
import type { Database } from '../../../src/infra/database/database.ts'
import type { Json, RuntimeState } from '../../../src/state/runtime-state.ts'
import type { FakeModel } from '../../support/fake-model/fake-model.ts'
import type { TestServer } from '../../support/http.ts'
import { adminToken, closing, runtimeTest } from '../../support/integration-test.ts'
import { type MediaVendor, mp3, mp4, png, startMediaVendor, wav } from '../../support/media-vendor.ts'
import { lessonOf } from '../../support/memory.ts'
import { until } from '../../support/runs.ts'
import { calling, say } from '../../support/script.ts'
import { type TestRuntime, waitForOperator } from '../../support/test-runtime.ts'

/** Runs that make and read images, recordings and videos, at a local vendor of real shape. */

const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const cooling = { baseMs: 5, maxMs: 10 }
const test = runtimeTest
  .extend(
    'runtimeOptions',
    { scope: 'file' },
    {
      models: null,
      modelRetryDelays: { retry: { attempts: 2, ...cooling }, cooling, disabled: cooling },
    },
  )
  .extend('media', { scope: 'file' }, closing(startMediaVendor))

let fake: FakeModel
let runtime: TestRuntime
let server: TestServer
let vendor: MediaVendor
let endpoint: string
let path: string

const call = async (method: string, at: string, json?: unknown): Promise<Record<string, unknown>> => {
  const { status, body, text } = await server.call(method, `/admin/v1${at}`, {
    token: adminToken,
    ...(json !== undefined && { json }),
  })
  if (status >= 300) throw new Error(`${method} ${at} gave ${status}: ${text}`)
  return body
}
const make = async (at: string, json: unknown): Promise<string> => String((await call('POST', at, json)).id)

test.beforeAll(async ({ model, runtime: r, server: s, media }) => {
  ;[fake, runtime, server, vendor] = [model, r, s, media]
  const chat = await make('/vendors', { name: 'chat' })
  const main = await make(`/vendors/${chat}/endpoints`, {
    name: 'main',
    base_url: fake.baseUrl,
    protocol: 'openai',
  })
  await make(`/vendors/${chat}/models`, { name: 'plans', upstream_name: 'big', endpoint_id: main })
  path = `/vendors/${await make('/vendors', { name: 'studio' })}`
  await make(`${path}/keys`, { label: 'main', secret: 'sk-of-the-studio-0123456789' })
  endpoint = await make(`${path}/endpoints`, { name: 'main', base_url: vendor.baseUrl, protocol: 'openai' })
})
beforeEach(() => {
  fake.reset()
  vendor.requests.length = 0
  vendor.fail.clear()
  vendor.pollsLeft = 0
})

const addModel = (name: string, category: string, more: object = {}): Promise<string> =>
  make(`${path}/models`, { name, upstream_name: `up-${name}`, category, endpoint_id: endpoint, ...more })

/** A run whose planner makes these calls, one a step, and then finishes. */
const runWith = async (
  calls: readonly [tool: string, args: object][],
  more: object = {},
  script: Parameters<typeof say>[1] = {},
) => {
  const sufficient = { text: JSON.stringify({ is_sufficient: true, feedback: '', judged: [] }) }
  say(fake, {
    planner: [...calls.map((one) => calling(one)), { text: 'Done.' }],
    reflection: [sufficient],
    ...script,
  })
  const run = await runtime.complete({ prompt: 'Go on', ...more })
  expect(run.status).toBe('completed')
  return { run, state: await runtime.stateOf(run.id) }
}
const answersOf = (state: RuntimeState, tool: string) =>
  state.action_history.flat().filter(({ node, result }) => node === tool && result.call !== undefined)
const offeredTools = (): string[] =>
  (fake.requests('planner').at(-1)?.tools ?? []).map(
    (tool) => (tool as { function: { name: string } }).function.name,
  )
const blobOf = async (runId: string, hash: string): Promise<Buffer> => {
  const response = await fetch(`${server.url}/v1/runs/${runId}/blobs/${hash}`, {
    headers: { authorization: `Bearer ${adminToken}` },
  })
  expect(response.status).toBe(200)
  return Buffer.from(await response.arrayBuffer())
}
const upload = (name: string, bytes: Uint8Array, type: string) => ({
  name,
  type,
  content_base64: Buffer.from(bytes).toString('base64'),
})
const usageRows = async (): Promise<Record<string, Json>[]> => {
  const { data } = await call('GET', '/usage?group_by=model')
  return data as Record<string, Json>[]
}

const tools = [
  ['generate_image', 'text-to-image', { prompt: 'a cat' }],
  ['edit_image', 'image-edit', { files: ['a.png'], prompt: 'a hat' }],
  ['transcribe', 'speech-to-text', { file: 'a.wav' }],
  ['speak', 'text-to-speech', { text: 'Hello' }],
  ['generate_video', 'text-to-video', { prompt: 'a boat' }],
] as const

describe('without a model of its category', () => {
  test('no tool of media is offered to the planner', async () => {
    await runWith([])
    expect(offeredTools()).toContain('calculate')
    expect(offeredTools().filter((name) => tools.some(([tool]) => tool === name))).toEqual([])
  })

  test.for(tools)(
    '%s that a plan or a request names is an error that names the missing route',
    async ([tool, category, args]) => {
      const { state } = await runWith([[tool, args]])
      const [answer] = answersOf(state, tool)
      expect(answer?.result).toMatchObject({ is_error: true })
      expect(answer?.result.text).toContain(`no model of the category ${category} is set up`)
      expect(answer?.result.text).toContain(`--category ${category}`)
      expect(answer?.result.text).toContain('POST /admin/v1/routes')
      await runWith([], { tools: [tool] })
      expect(offeredTools()).toContain(tool)
      expect(vendor.requests).toEqual([])
    },
  )
})

describe('with a model of its category', () => {
  test.beforeAll(async () => {
    await addModel('painter', 'text-to-image', { prices: { input: 5, output: 40, currency: 'USD' } })
    await addModel('retoucher', 'image-edit')
    await addModel('listener', 'speech-to-text')
    await addModel('speaker', 'text-to-speech')
  })

  test('generate_image makes a file of the run, with an image context, metered', async () => {
    const { run, state } = await runWith([['generate_image', { prompt: 'a red cat', size: '1024x1024' }]])
    expect(offeredTools()).toEqual(
      expect.arrayContaining(['generate_image', 'edit_image', 'transcribe', 'speak']),
    )
    expect(offeredTools()).not.toContain('generate_video')
    const [request] = vendor.to('/images/generations')
    expect(request).toMatchObject({ key: 'sk-of-the-studio-0123456789', role: 'text-to-image' })
    expect(request?.fields).toEqual({ model: 'up-painter', prompt: 'a red cat', size: '1024x1024' })
    const [answer] = answersOf(state, 'generate_image')
    const hash = sha(png)
    expect(answer?.context).toMatchObject({
      type: 'image',
      usage_type: 'output',
      content: [{ blob: hash, mime_type: 'image/png', bytes: png.length }],
      mapping: { provider: 'local', path: `blob:${hash}`, public: `/v1/runs/${run.id}/blobs/${hash}` },
    })
    expect(answer?.usage).toEqual({ prompt_tokens: 10, completion_tokens: 90, total_tokens: 100 })
    expect((await blobOf(run.id, hash)).equals(png)).toBe(true)
    expect(state.origin_files).toMatchObject([{ type: 'image/png', local_path: `blob:${hash}` }])
    await until('the ledger has the image', async () =>
      (await usageRows()).some(({ model }) => model === 'painter'),
    )
    expect((await usageRows()).find(({ model }) => model === 'painter')).toMatchObject({ total_tokens: 100 })
  })

  test('edit_image changes an image that an earlier call made, byte for byte', async () => {
    const { state } = await runWith([
      ['generate_image', { prompt: 'a cat', n: 2 }],
      ['edit_image', { files: ['image-3-1-1.png'], prompt: 'with a hat' }],
      ['edit_image', { files: ['image-3-1-1.png', 'image-3-1-2.png'], prompt: 'side by side' }],
    ])
    expect(state.origin_files.map(({ name }) => name).slice(0, 2)).toEqual([
      'image-3-1-1.png',
      'image-3-1-2.png',
    ])
    expect(answersOf(state, 'edit_image').map(({ result }) => result.is_error)).toEqual([
      undefined,
      undefined,
    ])
    const [single, several] = vendor.to('/images/edits')
    expect(single?.fields).toEqual({ model: 'up-retoucher', prompt: 'with a hat' })
    expect(single?.files).toEqual([
      { field: 'image', name: 'image-3-1-1.png', type: 'image/png', bytes: png },
    ])
    expect(several?.files.map(({ field }) => field)).toEqual(['image[]', 'image[]'])
  })

  test('transcribe writes down an uploaded recording, which reaches the vendor byte for byte', async () => {
    const files = [upload('call.wav', wav, 'audio/wav')]
    const { state } = await runWith([['transcribe', { file: 'call.wav', language: 'en' }]], { files })
    const [request] = vendor.to('/audio/transcriptions')
    expect(request?.fields).toEqual({ model: 'up-listener', language: 'en', response_format: 'json' })
    expect(request?.files).toEqual([{ field: 'file', name: 'call.wav', type: 'audio/wav', bytes: wav }])
    const [answer] = answersOf(state, 'transcribe')
    expect(answer?.result.text).toBe('The weekly call is on Tuesday.')
    expect(answer?.usage.total_tokens).toBe(42)
  })

  test('transcribe of a file that is no recording, or that is not there, says so', async () => {
    const files = [upload('notes.txt', Buffer.from('hello'), 'text/plain')]
    const { state } = await runWith(
      [
        ['transcribe', { file: 'notes.txt' }],
        ['transcribe', { file: 'none.mp3' }],
      ],
      { files },
    )
    const [wrong, absent] = answersOf(state, 'transcribe').map(({ result }) => result.text)
    expect(wrong).toBe("Error: 'notes.txt' is text/plain, which this tool does not take.")
    expect(absent).toBe("Error: there is no file 'none.mp3'. Files there are: notes.txt.")
    expect(vendor.requests).toEqual([])
  })

  test('speak keeps the recording, and the next turn does not try to read it', async () => {
    const { run, state } = await runWith([['speak', { text: 'Good morning', voice: 'nova' }]])
    expect(vendor.to('/audio/speech')[0]?.fields).toEqual({
      model: 'up-speaker',
      input: 'Good morning',
      voice: 'nova',
    })
    const [answer] = answersOf(state, 'speak')
    expect(answer?.context).toMatchObject({ type: 'data', content: [{ mime_type: 'audio/mpeg' }] })
    expect((await blobOf(run.id, sha(mp3))).equals(mp3)).toBe(true)
    const next = await runWith([], { session_id: run.session_id })
    expect(next.state.action_history[1]?.map(({ node }) => node)).not.toContain('preprocess-files')
  })

  test('an image that comes as an address is downloaded, from a private one only at the endpoint itself', async () => {
    const origin = new URL(vendor.baseUrl).origin
    const sending = (url: string): void =>
      void vendor.fail.set('/v1/images/generations', { status: 200, body: { created: 1, data: [{ url }] } })
    vendor.fail.set('/files/a.png', { status: 200, body: png, type: 'image/png' })
    sending(`${origin}/files/a.png`)
    const { run } = await runWith([['generate_image', { prompt: 'a cat' }]])
    expect((await blobOf(run.id, sha(png))).equals(png)).toBe(true)
    expect(vendor.to('/files/a.png')).toMatchObject([{ method: 'GET', key: 'undefined' }])
    vendor.requests.length = 0
    sending(`${fake.baseUrl}/private.png`)
    const { state } = await runWith([['generate_image', { prompt: 'a cat' }]])
    expect(answersOf(state, 'generate_image')[0]?.result).toMatchObject({ is_error: true })
    expect(state.origin_files).toEqual([])
  })

  test('a vendor that refuses is an error with its words, and the run goes on', async () => {
    const error = { message: 'Your prompt was blocked.', code: 'moderation_blocked', type: 'user_error' }
    vendor.fail.set('/v1/images/generations', { status: 400, body: { error } })
    const { state } = await runWith([['generate_image', { prompt: 'x' }]])
    const [answer] = answersOf(state, 'generate_image')
    expect(answer?.result).toMatchObject({ is_error: true, code: 'model_content_filtered' })
    expect(answer?.result.text).toContain('Your prompt was blocked.')
  })
})

describe('a video', () => {
  test.beforeAll(async () => {
    const quick = { ...openaiVideos, name: 'quick videos', poll: { ...openaiVideos.poll, interval_ms: 5 } }
    const response_format_id = await make('/response-formats', quick)
    await addModel('filmer', 'text-to-video', { response_format_id })
  })
  const film: [string, object][] = [
    ['generate_video', { prompt: 'a boat on a river', seconds: 8, size: '1280x720' }],
  ]
  const effectsOf = async (database: Database, runId: string) =>
    (await database.query('SELECT status, sends, class FROM effects WHERE run_id = $1', [runId])).rows

  test('is polled to its end and becomes a file of the run; the submission is in the effect ledger', async ({
    database,
  }) => {
    vendor.pollsLeft = 2
    const { run, state } = await runWith(film)
    expect(vendor.requests.map(({ method, path: at }) => `${method} ${at}`)).toEqual([
      'POST /v1/videos',
      ...Array(3).fill('GET /v1/videos/video_1'),
      'GET /v1/videos/video_1/content',
    ])
    expect(vendor.requests[0]?.fields).toEqual({
      model: 'up-filmer',
      prompt: 'a boat on a river',
      seconds: '8',
      size: '1280x720',
    })
    expect(new Set(vendor.requests.map(({ key }) => key))).toEqual(new Set(['sk-of-the-studio-0123456789']))
    const [answer] = answersOf(state, 'generate_video')
    expect(answer?.context).toMatchObject({ type: 'data', content: [{ mime_type: 'video/mp4' }] })
    expect((await blobOf(run.id, sha(mp4))).equals(mp4)).toBe(true)
    expect(await effectsOf(database, run.id)).toEqual([{ status: 'succeeded', sends: 1, class: 'manual' }])
    await until('the ledger has the video', async () =>
      (await usageRows()).some(({ model, requests }) => model === 'filmer' && requests === 1),
    )
  })

  test('that the vendor fails is an error with its reason, and is not submitted again', async () => {
    const error = { code: 'moderation_blocked', message: 'The prompt was blocked.' }
    vendor.onRequest = ({ path: at }) => {
      if (/video_\d+$/.test(at))
        vendor.fail.set(at, { status: 200, body: { id: 'x', status: 'failed', error } })
    }
    const { state } = await runWith(film)
    vendor.onRequest = () => {}
    const [answer] = answersOf(state, 'generate_video')
    expect(answer?.result.is_error).toBe(true)
    expect(answer?.result.text).toContain('The prompt was blocked.')
    expect(vendor.to('/videos')).toHaveLength(1)
  })

  test('whose polls fail for a while is still brought', async () => {
    vendor.pollsLeft = 1
    let polls = 0
    vendor.onRequest = ({ path: at }) => {
      if (!/video_\d+$/.test(at)) return
      polls += 1
      if (polls <= 3) vendor.fail.set(at, { status: 503, body: {} })
      else vendor.fail.delete(at)
    }
    const { state } = await runWith(film)
    vendor.onRequest = () => {}
    expect(answersOf(state, 'generate_video')[0]?.result.is_error).toBeUndefined()
  })

  test('that the vendor refuses is an error with its words, and no job is polled', async () => {
    const error = { message: 'seconds must be 4, 8 or 12', type: 'invalid_request_error' }
    vendor.fail.set('/v1/videos', { status: 400, body: { error } })
    const { state } = await runWith(film)
    expect(answersOf(state, 'generate_video')[0]?.result.text).toContain('seconds must be 4, 8 or 12')
    expect(vendor.requests).toHaveLength(1)
  })

  test('whose submission may have been taken is not sent again; an operator is needed', async () => {
    vendor.fail.set('/v1/videos', { status: 502, body: 'bad gateway' })
    say(fake, { planner: [calling(['generate_video', { prompt: 'a boat' }]), { text: 'Done.' }] })
    const { run } = await runtime.of('default').submit({ prompt: 'Go on', user_id: 'u1' })
    expect((await waitForOperator(runtime, run.id)).error).toContain('502')
    await runtime.of('default').cancel(run.id, undefined)
    expect(vendor.requests).toHaveLength(1)
  })
})

describe('a rerank model', () => {
  const notes = ['tea in the morning', 'coffee after lunch', 'water with dinner', 'juice at breakfast']
  const lines = Array.from(
    { length: 30 },
    (_, at) => `item ${at}: ${at === 17 ? 'the invoice of May' : 'other'}`,
  )
  const files = [upload('list.txt', Buffer.from(lines.join('\n')), 'text/plain')]
  const search = (more: object = {}) =>
    runWith([['search_file_content', { file_path: 'list.txt', pattern: 'item' }]], { files, ...more })
  const numbersIn = (state: RuntimeState): number[] =>
    [...String(answersOf(state, 'search_file_content')[0]?.result.text).matchAll(/\[Line (\d+)/g)].map(
      ([, number]) => Number(number),
    )
  const inOrder = lines.map((_, at) => at + 1)
  const remember = async (user_id: string): Promise<void> => {
    const said = notes.map((note) => `I like ${note}.`)
    await runWith(
      said.map((content) => ['remember', { content }]),
      { user_id, prompt: said.join(' ') },
      {
        distill: said.map((one) => ({
          text: JSON.stringify({ memories: [lessonOf('preference', one, one)] }),
        })),
      },
    )
  }
  const recall = async (user_id: string): Promise<string[]> => {
    const { state } = await runWith([['recall', { query: 'what do I like to drink?', limit: 2 }]], {
      user_id,
    })
    const text = String(answersOf(state, 'recall')[0]?.result.text)
    return text.split('\n').map((line) => /I like (.*?)\. \(/.exec(line)?.[1] ?? line)
  }

  test('that is not there changes nothing: lines come in their order', async () => {
    expect(numbersIn((await search()).state)).toEqual(inOrder)
    expect(vendor.requests).toEqual([])
  })

  test('orders what a search of a file found by the request, and the tokens count for the run', async () => {
    await addModel('ranker', 'rerank')
    vendor.score = (query, document) =>
      query.includes('invoice') && document.includes('invoice') ? 0.9 : 0.1
    const { state } = await search({ prompt: 'Find the invoice' })
    const [request] = vendor.to('/rerank')
    expect(request).toMatchObject({
      role: 'rerank',
      fields: { model: 'up-ranker', query: 'Find the invoice' },
    })
    expect(numbersIn(state)).toEqual([18, ...inOrder.filter((number) => number !== 18)])
    expect(answersOf(state, 'search_file_content')[0]?.result.text).toContain('the most relevant first')
  })

  test('orders what is remembered of the user, before the list is cut', async () => {
    await remember('drinker')
    vendor.score = (_, document) => notes.findIndex((note) => document.includes(note)) / 10
    vendor.requests.length = 0
    expect(await recall('drinker')).toEqual(['juice at breakfast', 'water with dinner'])
    expect(vendor.to('/rerank').at(-1)?.fields.documents).toHaveLength(4)
  })

  test('that fails leaves the order that was there', async () => {
    vendor.fail.set('/v1/rerank', { status: 500, body: { message: 'broken' } })
    expect(numbersIn((await search({ prompt: 'Find the invoice' })).state)).toEqual(inOrder)
    expect(vendor.to('/rerank').length).toBeGreaterThan(0)
    expect(await recall('drinker')).toHaveLength(2)
  })

  test('that ranks documents which were not sent leaves the order that was there', async () => {
    vendor.fail.set('/v1/rerank', { status: 200, body: { results: [{ index: 99, relevance_score: 1 }] } })
    expect(numbersIn((await search({ prompt: 'Find the invoice' })).state)).toEqual(inOrder)
  })
})

describe('the test of a model by an admin', () => {
  test.for([
    ['painter', { images: [{ base64: png.toString('base64') }] }],
    ['retoucher', { images: [{ base64: png.toString('base64') }] }],
    ['listener', { text: 'The weekly call is on Tuesday.' }],
    ['speaker', { audio: { base64: mp3.toString('base64'), mime_type: 'audio/mpeg' } }],
    ['filmer', { video: { base64: mp4.toString('base64'), mime_type: 'video/mp4' } }],
    ['ranker', { ranking: [{ index: 0 }, { index: 1 }] }],
  ] as const)('makes a real call of %s and shows what it read', async ([name, parsed]) => {
    vendor.score = (_, document) => (document === 'something else' ? 0 : 1)
    const { data } = await call('GET', `${path}/models?limit=50`)
    const model = (data as { id: string; name: string }[]).find((one) => one.name === name)
    const tested = await call('POST', `${path}/models/${model?.id}/test`, {})
    expect(tested).toMatchObject({ ok: true, parsed, error: null })
  })
})
