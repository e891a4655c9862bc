import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../../src/infra/lib/silent-log.ts'
import { Secret } from '../../../../src/infra/secrets/secret.ts'
import type { ProviderOutcome } from '../../../../src/models/ports/model-ports.ts'
import { createOpenAIProvider } from '../../../../src/models/providers/openai/openai-provider.ts'
import { createCountingClock, never, patient } from '../../../support/models.ts'
import { egressOver, type Fetch } from '../../../support/one-server.ts'
import * as entries from '../../../support/registry-view.ts'
import { responseFormats } from '../../../support/response-formats.ts'

const model = entries.model('alias', {
  endpoint: entries.endpoint('e', {
    base_url: 'https://vendor.test/v1?version=2',
    headers: { 'x-api-key': '{{key}}' },
    timeouts: patient,
  }),
  upstream_name: 'embedder-3',
  category: 'embedding',
})
const key = entries.key('k', 'v1', { secret: new Secret('sk-$&-of-the-vendor') })

const embed = (fetch: Fetch, input: string[], category = 'embedding'): Promise<ProviderOutcome> => {
  const clock = createCountingClock()
  const provider = createOpenAIProvider({
    egress: egressOver(fetch),
    formats: responseFormats,
    clock,
    log: silentLog,
  })
  const ask = {
    role: 'embedding',
    messages: [],
    tools: [],
    schema: null,
    input,
    query: null,
    prompt: null,
    parameters: { dimensions: 3 },
    stream: false,
  }
  const request = {
    model: { ...model, category },
    key,
    ask,
    endsAtMs: clock.monotonicMs() + 20_000,
    usedIds: [],
    onDelta: () => {},
  }
  return provider.send(request, never())
}

const answering =
  (body: unknown, status = 200): Fetch =>
  () =>
    Promise.resolve(new Response(typeof body === 'string' ? body : JSON.stringify(body), { status }))
const listOf = (...vectors: unknown[]) => ({
  object: 'list',
  data: vectors.map((embedding, index) => ({ index, embedding })).reverse(),
  model: 'embedder-3-large',
  usage: { prompt_tokens: 7, total_tokens: 7 },
})

describe('embeddings', () => {
  it('are asked for as floats, with the headers of the endpoint, and put into the order of the texts', async () => {
    const seen: { url: string; init: RequestInit | undefined }[] = []
    const outcome = await embed(
      (url, init) => {
        seen.push({ url: String(url), init })
        return answering(listOf([1, 2, 3], [4, 5, 6]))(url, init)
      },
      ['one\nline', 'two'],
    )
    expect(outcome).toMatchObject({
      ok: true,
      result: {
        embeddings: [
          [1, 2, 3],
          [4, 5, 6],
        ],
        usage: { prompt_tokens: 7, completion_tokens: 0, total_tokens: 7 },
        model: 'embedder-3-large',
      },
    })
    expect(seen[0]?.url).toBe('https://vendor.test/v1/embeddings?version=2')
    expect(JSON.parse(String(seen[0]?.init?.body))).toEqual({
      model: 'embedder-3',
      input: ['one\nline', 'two'],
      encoding_format: 'float',
      dimensions: 3,
    })
    expect(seen[0]?.init?.headers).toMatchObject({
      'x-api-key': 'sk-$&-of-the-vendor',
      'x-mason-role': 'embedding',
    })
    expect(seen[0]?.init?.headers).not.toHaveProperty('authorization')
  })

  it.each([
    ['too few', answering(listOf([1, 2])), 'model_bad_reply', /1 embeddings for 2 texts/],
    [
      'of unlike lengths',
      answering(listOf([1, 2], [1])),
      'model_bad_reply',
      /2 and 1 numbers|1 and 2 numbers/,
    ],
    [
      'empty, as of a server without base64',
      answering(listOf([], [])),
      'model_bad_reply',
      /no answer of the protocol/,
    ],
    ['in words', answering('not JSON at all'), 'model_bad_reply', /what is not JSON/],
    ['cut', answering('{"data": [{"emb'), 'model_bad_reply', /not JSON/],
    ['refused', answering({ error: { message: 'no' } }, 401), 'model_unauthorized', /401/],
    ['limited', answering({ error: { message: 'no' } }, 429), 'model_rate_limited', /429/],
  ])('that come %s are a typed error', async (_, fetch, code, what) => {
    expect(await embed(fetch, ['a', 'b'])).toMatchObject({
      ok: false,
      error: { code, what: expect.stringMatching(what) },
    })
  })

  it('are one path of the protocol beside chat; images have their own', async () => {
    const paths: string[] = []
    const fetch: Fetch = (url) => {
      paths.push(new URL(String(url)).pathname)
      return Promise.resolve(Response.json({ created: 1, data: [{ url: 'https://images.example/a.png' }] }))
    }
    const outcome = await embed(fetch, [], 'text-to-image')
    expect(outcome).toMatchObject({ ok: true, result: { images: [{ url: 'https://images.example/a.png' }] } })
    expect(paths).toEqual(['/v1/images/generations'])
  })
})
