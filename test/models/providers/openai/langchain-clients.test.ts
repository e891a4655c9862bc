import { afterEach, describe, expect, it, vi } from 'vitest'
import { ChatClient, EmbeddingClient } from '../../../../src/models/providers/openai/langchain-clients.ts'

/** Record 18: what of @langchain/openai we rely on beyond its public API. A new version that differs fails here. */
describe("LangChain's clients above our transport", () => {
  afterEach(() => vi.unstubAllEnvs())
  const messages = [{ role: 'user', content: 'Hello' }]

  it.each([true, false])('hand over a chat request as it is, once, with stream %s', async (stream) => {
    const client = new ChatClient()
    const request = { model: 'm', messages, stream, temperature: 0.5 }
    const posted: object[] = []
    await client.ask(request, async (body) => void posted.push(body))
    expect(posted).toEqual([request])
  })

  it('hand over a request for JSON by a schema, which the SDK would parse', async () => {
    const json_schema = { name: 'answer', schema: { type: 'object' }, strict: false }
    const request = {
      model: 'm',
      messages,
      stream: false,
      response_format: { type: 'json_schema', json_schema },
    }
    const posted: object[] = []
    await new ChatClient().ask(request, async (body) => void posted.push(body))
    expect(posted).toEqual([request])
  })

  it('build the parameters of a streamed request with tools and its usage', () => {
    const tool = {
      type: 'function' as const,
      function: { name: 'read', description: 'Reads', parameters: { type: 'object' } },
    }
    const params = new ChatClient().invocationParams({ tools: [tool] }, { streaming: true })
    expect(JSON.parse(JSON.stringify(params))).toEqual({
      model: 'unnamed',
      stream: false, // the caller sets its own
      stream_options: { include_usage: true },
      tools: [tool],
    })
  })

  it('pass concurrent requests on at once and do not repeat one that fails', async () => {
    const client = new ChatClient()
    let posts = 0
    const post = async (): Promise<void> => {
      posts += 1
      throw new TypeError('no')
    }
    const calls = [1, 2, 3].map(() => client.ask({ model: 'm', messages, stream: true }, post))
    expect(posts).toBe(3)
    for (const call of await Promise.allSettled(calls)) expect(call).toMatchObject({ status: 'rejected' })
    expect(posts).toBe(3)
  })

  it('read no key, address or organization from the environment', async () => {
    for (const name of ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'OPENAI_ORGANIZATION', 'OPENAI_ORG_ID'])
      vi.stubEnv(name, 'from-the-environment')
    const seen: string[] = []
    const post = async (body: object): Promise<void> => void seen.push(JSON.stringify(body))
    const client = new ChatClient()
    const params = client.invocationParams({}, { streaming: true })
    await client.ask({ ...params, messages }, post)
    await new EmbeddingClient(post).request({ model: 'm', input: ['a'] })
    expect(seen).toHaveLength(2)
    expect(seen.join()).not.toContain('from-the-environment')
  })

  it('hand over a request for embeddings as it is, once', async () => {
    const request = { model: 'm', input: ['a', 'b'], encoding_format: 'float' as const }
    const posted: object[] = []
    await new EmbeddingClient(async (body) => void posted.push(body)).request(request)
    expect(posted).toEqual([request])
  })
})
