import { LLMock } from '@copilotkit/aimock'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { anthropicMessages } from '../../../../src/features/response-formats/built-in/anthropic-messages.ts'
import { cohereEmbeddings } from '../../../../src/features/response-formats/built-in/cohere-embeddings.ts'
import { geminiGenerateContent } from '../../../../src/features/response-formats/built-in/gemini-generate-content.ts'
import { ollamaChat } from '../../../../src/features/response-formats/built-in/ollama-chat.ts'
import { openaiChat } from '../../../../src/features/response-formats/built-in/openai-chat.ts'
import { openaiEmbeddings } from '../../../../src/features/response-formats/built-in/openai-embeddings.ts'
import {
  openaiImages,
  openaiSpeech,
  openaiTranscriptions,
} from '../../../../src/features/response-formats/built-in/openai-media.ts'
import { openaiResponses } from '../../../../src/features/response-formats/built-in/openai-responses.ts'
import { rerank } from '../../../../src/features/response-formats/built-in/rerank.ts'
import type { CanonicalRequest } from '../../../../src/models/ports/model-ports.ts'
import type { FormatInput } from '../../../../src/models/schemas/response-format.ts'
import { call, errorOf, modelOf, resultOf } from '../../../support/http-call.ts'

/**
 * The built-in formats against vendors as others have written them, over the real transport. Of aimock's eleven, ElevenLabs
 * is left out: no built-in format has its request. The stream of Bedrock is binary, so it is called without one.
 */

const openBedrock = {
  ...anthropicMessages,
  request: { ...anthropicMessages.request, path: '/invoke' },
} as FormatInput
const vendors: [name: string, format: FormatInput, path: string, streams: boolean[]][] = [
  ['OpenAI', openaiChat, '/v1', [true, false]],
  ['OpenAI by its Responses', openaiResponses, '/v1', [true, false]],
  ['Azure OpenAI', openaiChat, '/openai/deployments/upstream-1', [true, false]],
  ['OpenRouter', openaiChat, '/api/v1', [true, false]],
  ['BytePlus Ark', openaiChat, '/api/v3', [true, false]],
  ['Anthropic', anthropicMessages, '/v1', [true, false]],
  ['Bedrock', openBedrock, '/model/upstream-1', [false]],
  ['Gemini', geminiGenerateContent, '/v1beta', [true, false]],
  ['Vertex AI', geminiGenerateContent, '/v1/projects/p/locations/l/publishers/google', [true, false]],
  ['Ollama', ollamaChat, '', [true, false]],
]
const cases = vendors.flatMap(([name, format, path, streams]) =>
  streams.map((stream) => ({ name, format, path, stream, how: stream ? 'in a stream' : 'at once' })),
)

const usage = {
  prompt_tokens: 11,
  completion_tokens: 7,
  total_tokens: 18,
  input_tokens: 11,
  output_tokens: 7,
  promptTokenCount: 11,
  candidatesTokenCount: 7,
  totalTokenCount: 18,
}
const getWeather = {
  name: 'get_weather',
  description: 'The weather of a city',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}
const weather = { name: 'get_weather', arguments: '{"city":"Oslo"}' }

const mock = new LLMock({ port: 0 })
beforeAll(async () => {
  mock.on({ userMessage: 'weather', hasToolResult: true }, { content: 'It is 7 degrees.', usage })
  mock.onMessage('weather', {
    content: 'One moment.',
    toolCalls: [
      { id: 'call_7', ...weather },
      { id: 'call_8', name: 'get_weather', arguments: '{"city":"Bergen"}' },
    ],
    usage,
  })
  mock.onMessage('think', { content: 'Forty-two.', reasoning: 'Six times seven.', usage })
  mock.onMessage(
    'cut',
    { content: 'This text is longer than what arrives of it.', usage },
    { truncateAfterChunks: 2, chunkSize: 5 },
  )
  mock.onMessage('long', { content: 'As far as', finishReason: 'length', usage })
  mock.onMessage('hello', { content: 'Hi there, friend of mine!', usage })
  for (const [words, status, type] of [
    ['who', 401, 'authentication_error'],
    ['slow', 429, 'rate_limit_error'],
    ['wrong', 400, 'invalid_request_error'],
    ['down', 503, 'server_error'],
  ] as const)
    mock.onMessage(words, { error: { message: `It is ${words}`, type }, status, retryAfter: 7 })
  mock.onEmbedding('harbor', { embedding: [0.25, -0.5] })
  mock.onRerank('harbor', [
    { index: 1, relevance_score: 0.9 },
    { index: 0, relevance_score: 0.2 },
  ])
  mock.onImage('harbor', { image: { b64Json: 'iVBORw0KGgo=' } })
  mock.onSpeech('harbor', { audio: 'SUQz', format: 'mp3' })
  mock.onTranscription({ transcription: { text: 'Open at nine.' } })
  await mock.start()
})
afterAll(() => mock.stop())

const send = (format: FormatInput, path: string, ask: Partial<CanonicalRequest>) =>
  call({ model: modelOf(format, mock.url + path), ask })
const user = (content: string) => ({ role: 'user' as const, content })

describe.each(cases)('$name, $how,', ({ format, path, stream }) => {
  const ask = (content: string, more: Partial<CanonicalRequest> = {}) =>
    send(format, path, {
      stream,
      messages: [{ role: 'system', content: 'Be kind.' }, user(content)],
      ...more,
    })

  test('answers with text, whole and counted', async () => {
    const answer = await ask('hello')
    const result = resultOf(answer)
    expect(result).toMatchObject({ text: 'Hi there, friend of mine!', tool_calls: [], finish: 'stop' })
    // what aimock's Ollama counts is always 0
    if (format !== ollamaChat)
      expect(result.usage).toMatchObject({ prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 })
    expect(answer.deltas.map(({ text }) => text).join('')).toBe('Hi there, friend of mine!')
  })

  // aimock's Ollama ends every reply with `stop`
  test.runIf(format !== ollamaChat)('that is cut says so', async () => {
    expect(resultOf(await ask('long'))).toMatchObject({ text: 'As far as', finish: 'length' })
  })

  test('calls tools, and reads their results', async () => {
    const { text, tool_calls, finish } = resultOf(await ask('weather', { tools: [getWeather] }))
    expect([text, finish]).toEqual(['One moment.', 'tool_calls'])
    expect(tool_calls.map(({ name, arguments: args }) => ({ name, arguments: args }))).toEqual([
      weather,
      { ...weather, arguments: '{"city":"Bergen"}' },
    ])
    expect(new Set(tool_calls.map(({ id }) => id)).size).toBe(2)
    const results = tool_calls.map(({ id }) => ({ role: 'tool' as const, tool_call_id: id, content: '7' }))
    const messages = [user('weather'), { role: 'assistant' as const, content: text, tool_calls }, ...results]
    expect(resultOf(await ask('', { messages, tools: [getWeather] })).text).toBe('It is 7 degrees.')
  })

  test.each([
    ['who', 'model_unauthorized', 401],
    ['slow', 'model_rate_limited', 429],
    ['wrong', 'model_bad_request', 400],
    ['down', 'model_unavailable', 503],
  ])('says that it is %s: %s', async (words, code, status) => {
    const { error } = errorOf(await ask(words))
    expect(error).toMatchObject({ code, status, what: expect.stringContaining(`It is ${words}`) })
    if (status === 429) expect(error.retryAfterMs).toBe(7000)
  })

  test.runIf(stream)('that breaks off in its text is no answer', async () => {
    expect(errorOf(await ask('cut')).error.code).toMatch(/^model_(?:unavailable|bad_reply)$/)
  })
})

describe('what is no talk', () => {
  test.each([
    ['OpenAI', openaiEmbeddings, '/v1'],
    ['Cohere', cohereEmbeddings, '/v2'],
  ])('of %s is embedded', async (_, format, path) => {
    const { embeddings } = resultOf(await send(format, path, { input: ['the harbor', 'a harbor'] }))
    expect(embeddings).toEqual([
      [0.25, -0.5],
      [0.25, -0.5],
    ])
  })

  test('of Cohere is ranked', async () => {
    const asked = { query: 'harbor', input: ['a mill', 'a harbor'] }
    expect(resultOf(await send(rerank, '/v2', asked)).ranking).toEqual([
      { index: 1, score: 0.9 },
      { index: 0, score: 0.2 },
    ])
  })

  test('of OpenAI is painted, spoken and heard', async () => {
    const painted = resultOf(await send(openaiImages, '/v1', { prompt: 'a harbor' }))
    expect(painted.images).toMatchObject([{ base64: 'iVBORw0KGgo=' }])
    const spoken = resultOf(await send(openaiSpeech, '/v1', { prompt: 'the harbor' }))
    expect(spoken.audio).toMatchObject({ base64: 'SUQz' })
    const files = [{ name: 'a.mp3', mime_type: 'audio/mpeg', base64: 'SUQz' }]
    expect(resultOf(await send(openaiTranscriptions, '/v1', { files })).text).toBe('Open at nine.')
  })
})
