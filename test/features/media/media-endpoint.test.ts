// backends: either

import OpenAI, { toFile } from 'openai'
import { beforeEach, describe, expect } from 'vitest'
import { unique } from '../../support/backend.ts'
import { adminToken, closing, runtimeTest } from '../../support/integration-test.ts'
import { type MediaVendor, mp3, png, startMediaVendor, wav } from '../../support/media-vendor.ts'
import { until } from '../../support/runs.ts'
import { addVendor, quickWaits } from '../../support/vendors.ts'

/** Images, speech and transcriptions of the OpenAI-compatible endpoint, through the official client. */

const test = runtimeTest
  .extend('runtimeOptions', { scope: 'file' }, { models: null, modelRetryDelays: quickWaits })
  .extend('media', { scope: 'file' }, closing(startMediaVendor))

const business = unique('acme')
let vendor: MediaVendor
let url: string
let client: OpenAI
let post: (path: string, json: unknown) => Promise<Record<string, string>>

test.beforeAll(async ({ runtime, server, media }) => {
  vendor = media
  url = server.url
  const categories = { painter: 'text-to-image', speaker: 'text-to-speech', listener: 'speech-to-text' }
  for (const [name, category] of Object.entries(categories))
    await addVendor(runtime, `studio of ${name}`, vendor.baseUrl, {
      keys: [`${name}-key`],
      models: [name],
      model: { category },
    })
  post = async (path, json) => {
    const { status, body, text } = await server.call('POST', `/admin/v1${path}`, { token: adminToken, json })
    if (status !== 201) throw new Error(`POST ${path} gave ${status}: ${text}`)
    return body
  }
  const { token = '' } = await post('/tokens', {
    business_id: business,
    label: 'test',
    roles: ['submit', 'read'],
  })
  client = new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0 })
})
beforeEach(() => {
  vendor.requests.length = 0
  vendor.fail.clear()
})

const failing = async (work: PromiseLike<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> => {
  const error = await Promise.resolve(work).then(
    () => new Error('it did not fail'),
    (thrown: unknown) => thrown,
  )
  if (error instanceof OpenAI.APIError) return error
  throw error
}

describe('the endpoint', () => {
  test('makes images, metered for the business of the token', async ({ database }) => {
    const images = await client.images.generate({ model: 'painter', prompt: 'a cat', n: 2, size: '512x512' })
    expect(images.data?.map(({ b64_json }) => b64_json)).toEqual(Array(2).fill(png.toString('base64')))
    expect(images.usage).toEqual({ input_tokens: 10, output_tokens: 90, total_tokens: 100 })
    expect(vendor.requests[0]?.fields).toEqual({ model: 'painter', prompt: 'a cat', n: 2, size: '512x512' })
    const row = await until('the ledger has the images', async () => {
      const { rows } = await database.query(
        'SELECT role, model_name, status, total_tokens::int AS tokens FROM usage_ledger WHERE tenant = $1',
        [business],
      )
      return rows[0]
    })
    expect(row).toEqual({ role: 'door', model_name: 'painter', status: 'succeeded', tokens: 100 })
  })

  test('reads a text aloud: the bytes and the type of the vendor', async () => {
    const speech = await client.audio.speech.create({
      model: 'speaker',
      input: 'Good morning',
      voice: 'nova',
    })
    expect(speech.headers.get('content-type')).toBe('audio/mpeg')
    expect(Buffer.from(await speech.arrayBuffer()).equals(mp3)).toBe(true)
    expect(vendor.requests[0]?.fields).toEqual({ model: 'speaker', input: 'Good morning', voice: 'nova' })
  })

  test('writes down a recording that comes as a form, byte for byte', async () => {
    const recording = await toFile(wav, 'Anruf 会议.wav', { type: 'audio/wav' })
    const ask = { file: recording, model: 'listener', language: 'de', temperature: 0.2 }
    const { text } = await client.audio.transcriptions.create(ask)
    expect(text).toBe('The weekly call is on Tuesday.')
    expect(vendor.requests[0]).toMatchObject({
      fields: { model: 'listener', language: 'de', temperature: '0.2', response_format: 'json' },
      files: [{ field: 'file', name: 'Anruf 会议.wav', type: 'audio/wav', bytes: wav }],
    })
    const plain = await client.audio.transcriptions.create({ ...ask, response_format: 'text' })
    expect(plain).toBe('The weekly call is on Tuesday.')
  })

  test('passes on what the vendor says of the request, in the shape of OpenAI', async () => {
    const error = { message: 'size must be 1024x1024', type: 'invalid_request_error' }
    vendor.fail.set('/v1/images/generations', { status: 400, body: { error } })
    const refused = await failing(client.images.generate({ model: 'painter', prompt: 'a cat' }))
    expect(refused).toMatchObject({ status: 400, code: 'model_bad_request', type: 'invalid_request_error' })
    expect(refused.message).toContain('size must be 1024x1024')
  })

  test('refuses a model of another category, an unknown one and a foreign token before any vendor is called', async () => {
    const misused = await failing(client.images.generate({ model: 'speaker', prompt: 'a cat' }))
    expect(misused).toMatchObject({ status: 400, param: 'model' })
    expect(misused.message).toContain('"speaker" is a model for text-to-speech')
    const unknown = await failing(client.audio.speech.create({ model: 'none', input: 'a', voice: 'nova' }))
    expect(unknown).toMatchObject({ status: 404, code: 'model_not_found' })
    const stranger = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'foreign', maxRetries: 0 })
    const file = await toFile(wav, 'a.wav')
    expect(await failing(stranger.audio.transcriptions.create({ file, model: 'listener' }))).toMatchObject({
      status: 401,
      code: 'invalid_api_key',
    })
    expect(vendor.requests).toEqual([])
  })

  test('uses no key that is granted to others, and holds the limits of keys', async ({ runtime }) => {
    const { admin } = runtime
    const granted = await addVendor(runtime, 'granted studio', vendor.baseUrl, {
      keys: ['granted'],
      models: ['closed-painter'],
      model: { category: 'text-to-image' },
    })
    await admin.registry.grants.create({}, { key_id: granted.granted ?? '', business_id: unique('other') })
    const closed = await failing(client.images.generate({ model: 'closed-painter', prompt: 'a cat' }))
    expect(closed).toMatchObject({ status: 503, code: 'no_model_available' })
    expect(closed.message).toContain('no grant')
    await addVendor(runtime, 'small studio', vendor.baseUrl, {
      keys: ['small'],
      limits: { rpm: 1 },
      models: ['small-speaker'],
      model: { category: 'text-to-speech' },
      endpoint: { timeouts: { total_ms: 300 } },
    })
    const speak = () => client.audio.speech.create({ model: 'small-speaker', input: 'a', voice: 'nova' })
    await speak()
    expect(await failing(speak())).toMatchObject({ status: 429, code: 'rate_limit_exceeded' })
    expect(vendor.requests).toHaveLength(1)
  })

  const boundary = 'b'
  const part = (name: string, value: string, more = ''): string =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`
  const file = part('file', 'x', '; filename="a.wav"')
  const forms: [what: string, status: number, message: string, body: string, type?: string][] = [
    ['no file', 400, 'file: is required', `${part('model', 'listener')}--b--`],
    [
      'a text for the file',
      400,
      'file: must be a file',
      `${part('model', 'listener')}${part('file', 'x')}--b--`,
    ],
    ['no model', 400, 'model: is required', `${file}--b--`],
    [
      'a format that is not made here',
      400,
      'response_format: must be json or text',
      `${part('model', 'listener')}${file}${part('response_format', 'srt')}--b--`,
    ],
    ['a form that is cut', 400, 'the body is not a complete form', file],
    ['a thousand parts', 400, 'more than 100 parts', `${part('a', 'b').repeat(1000)}--b--`],
    ['a head of 20 KB', 400, 'a head of more than', `${part('a', 'b', `; x="${'y'.repeat(20_000)}"`)}--b--`],
    [
      'marks without a head',
      400,
      'a head of more than',
      `${`--${boundary}`.repeat(100)}${'\r'.repeat(20_000)}`,
    ],
    ['JSON', 415, 'the content-type is "application/json"', '{}', 'application/json'],
  ]
  test.for(forms)('answers %s with %i and names the field', async ([, status, message, body, type]) => {
    const response = await fetch(`${url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${client.apiKey}`,
        'content-type': type ?? `multipart/form-data; boundary=${boundary}`,
      },
      body,
    })
    const answer = (await response.json()) as { error: { message: string } }
    expect([response.status, answer.error.message]).toEqual([status, expect.stringContaining(message)])
    expect(vendor.requests).toEqual([])
  })
})
