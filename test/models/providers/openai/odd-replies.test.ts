import { describe, expect, test } from 'vitest'
import { ask, failureOf, never, openTestModels, wholeOf } from '../../../support/models.ts'

/** What servers and the gateways before them send beside the protocol. */

type Frame = object | string
/** Texts are sent as they are. */
const toBody = (frames: readonly Frame[]): string =>
  frames.map((one) => (typeof one === 'string' ? one : `data: ${JSON.stringify(one)}\n\n`)).join('')
const openCall = (body: string, onText: (text: string) => void = () => {}) =>
  openTestModels({
    baseUrl: 'http://in-memory/v1',
    fetch: () => Promise.resolve(new Response(body)),
    retry: { attempts: 1, baseMs: 1, maxMs: 1 },
  }).models.call(ask({ onText }), never())

const delta = (part: object, finish_reason: unknown = null, more: object = {}) => ({
  ...{ id: 'c', object: 'chat.completion.chunk', model: 'upstream' },
  choices: [{ index: 0, delta: part, finish_reason }],
  ...more,
})
const usage = { usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } }
const completion = (text: string, finish_reason: string | null = null) => ({
  ...{ id: 'c', object: 'text_completion', model: 'upstream' },
  choices: [{ index: 0, text, logprobs: null, finish_reason }],
})
const says = (content: string) => delta({ content })
const stop = delta({}, 'stop', usage)
const done = 'data: [DONE]\n\n'
const whole = (message: object, more: object = {}) =>
  JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }], ...more })

describe('a reply is read', () => {
  const a = { text: 'A', finish: 'stop' }
  test.each<[title: string, frames: readonly Frame[], reply: object]>([
    ['without empty events', ['data:\n\n', says('A'), 'data: \n\n', stop, done], a],
    ['without events that keep the connection', ['event: ping\ndata: ping\n\n', says('A'), stop, done], a],
    ['without what follows its end', [says('A'), stop, 'event: done\ndata: done\n\n'], a],
    ['with its end in quotes', [says('A'), stop, 'data: "[DONE]"\n\n'], a],
    [
      'with no empty line between events',
      [says('A'), says('B'), stop].map((one) => `data: ${JSON.stringify(one)}\n`).concat('data: [DONE]\n'),
      { text: 'AB', finish: 'stop' },
    ],
    [
      'with `data:` twice, as Spring sends it',
      [`data:data: ${JSON.stringify(says('A'))}\n\n`, stop, 'data:data: [DONE]\n\n'],
      a,
    ],
    [
      'with an event of many lines',
      [JSON.stringify(says('A'), null, 2).replaceAll(/^/gm, 'data: '), '\n\n', stop, done],
      a,
    ],
    ['beside an error without weight', [whole({ content: 'A' }, { error: {} })], a],
    [
      'beside an error of empty members',
      [whole({ content: 'A' }, { error: { message: '', type: '', param: '', code: null } })],
      a,
    ],
    [
      'with the reasoning of the second name, where the first is empty',
      [delta({ reasoning_content: '', reasoning: 'hm' }), says('A'), stop, done],
      { ...a, reasoning: 'hm' },
    ],
    [
      'with the name of its model, which the last chunk (of a filter) leaves empty',
      [says('A'), stop, { choices: [{ index: 0, finish_reason: null }], model: '' }, done],
      { ...a, model: 'upstream' },
    ],
    ['with JSON that the server has parsed', [whole({ content: { total: 36 } })], { text: '{"total":36}' }],
    ['with parts that are texts', [whole({ content: [{ type: 'text', text: 'A' }, 'B'] })], { text: 'AB' }],
    [
      'with counts of the other names',
      [says('A'), delta({}, 'stop', { usage: { input_tokens: 10, output_tokens: 5 } }), done],
      usage,
    ],
    [
      'with thoughts in the tags of Cohere, split between chunks',
      [says('<|START_THINKING|>hm<|END_THI'), says('NKING|>A'), stop, done],
      { text: 'A', reasoning: 'hm' },
    ],
    [
      'as cut, although the gateway adds a stop',
      [says('The'), delta({}, 'length'), stop, done],
      { finish: 'length' },
    ],
    [
      'as withheld, although the gateway adds a stop',
      [says('The'), delta({}, 'content_filter'), stop, done],
      { finish: 'content_filter' },
    ],
    [
      'as cut by a reason with a type',
      [says('The'), delta({}, { type: 'length' }), done],
      { finish: 'length' },
    ],
    [
      'in the shape of completions',
      [...['', 'A', ' noon'].map((text) => completion(text)), completion('.', 'length'), done],
      { text: 'A noon.', finish: 'length' },
    ],
    ['whole in the shape of completions', [JSON.stringify(completion('A', 'stop'))], a],
    ['beside an empty text of completions', [whole({ content: 'A' }).replace('"index":0', '"text":""')], a],
    [
      'with an unknown reason that a known one follows',
      [delta({ content: 'A' }, 'partially'), stop, done],
      a,
    ],
  ])('%s', async (_, frames, reply) => {
    expect(await openCall(toBody(frames))).toMatchObject(reply)
  })
})

test('a stream of 50,000 lines without an empty one is read', async () => {
  const lines = `data: ${JSON.stringify(says('x'))}\n`.repeat(50_000)
  const { text } = await openCall(`${lines}data: ${JSON.stringify(stop)}\n`)
  expect(text).toHaveLength(50_000)
})

describe('a call is read', () => {
  const piece = (index: unknown, id: unknown, name: unknown, text: unknown) => ({
    ...{ index, id, type: 'function', function: { name, arguments: text } },
  })
  const calls = (...list: unknown[]) => delta({ tool_calls: list })
  const note = ['note {"a":1}']
  const both = [...note, 'read {"b":2}']
  test.each<[title: string, chunks: readonly object[], made: readonly string[]]>([
    [
      'not from a placeholder of nulls',
      [delta({ content: 'A', tool_calls: [piece(0, null, null, null)] })],
      [],
    ],
    ['not from an empty placeholder', [delta({ content: 'A', tool_calls: [piece(0, '', '', '')] })], []],
    ['not from null', [delta({ content: 'A', tool_calls: [null] })], []],
    [
      'not from an empty chunk of a new index',
      [calls(piece(0, 'c', 'note', '{"a":1}')), calls(piece(1, '', '', ''))],
      note,
    ],
    [
      'once, where its arguments are sent twice',
      [
        calls(piece(0, 'c', 'note', '')),
        calls(piece(0, null, null, '{"a":1}')),
        calls(piece(0, 'c', null, '{"a":1}')),
      ],
      note,
    ],
    [
      'once, where each chunk has all arguments so far',
      ['{"a"', '{"a":1', '{"a":1}'].map((text) => calls(piece(0, 'c', 'note', text))),
      note,
    ],
    [
      'by its id, where all have one index',
      [
        ...[calls(piece(0, 'c', 'note', '')), calls(piece(0, 'd', 'read', ''))],
        ...[calls(piece(0, 'c', null, '{"a":1}')), calls(piece(0, 'd', null, '{"b":2}'))],
      ],
      both,
    ],
    [
      'by its index, which is a text',
      [
        calls(piece('0', 'c', 'note', ''), piece('1', 'd', 'read', '')),
        calls(piece('1', null, null, '{"b":2}'), piece('0', null, null, '{"a":1}')),
      ],
      both,
    ],
    [
      'with the arguments of PHP, which writes an empty object as a list',
      [calls(piece(0, 'c', 'note', [])), calls(piece(0, 'c', null, '{"a":1}'))],
      note,
    ],
    [
      'with an empty list in its arguments',
      ['{"a":', '[]', '}'].map((text) => calls(piece(0, 'c', 'note', text))),
      ['note {"a":[]}'],
    ],
    [
      'with its name, where each chunk has all of it so far',
      [
        calls(piece(0, 'c', 'no', '')),
        calls(piece(0, 'c', 'note', '')),
        calls(piece(0, 'c', 'note', '{"a":1}')),
      ],
      note,
    ],
    [
      'from the field before tool_calls',
      [
        delta({ function_call: { name: 'note', arguments: '' } }),
        delta({ function_call: { arguments: '{"a":1}' } }),
      ],
      note,
    ],
    [
      'twice, where two calls are run together',
      [calls(piece(0, 'c', 'note', '{"a":1}')), calls(piece(0, '', 'note', '{"a":1}'))],
      [...note, ...note],
    ],
  ])('%s', async (_, chunks, made) => {
    const { tool_calls } = await openCall(toBody([...chunks, delta({}, 'tool_calls'), done]))
    expect(tool_calls.map((one) => `${one.name} ${one.arguments}`)).toEqual(made)
  })

  test('keeps both arguments where they differ, so that the model sees both', async () => {
    const chunks = ['{"a":1}', '{"a":2}'].map((text) => calls(piece(0, 'c', 'note', text)))
    const { tool_calls } = await openCall(toBody([...chunks, delta({}, 'tool_calls'), done]))
    expect(tool_calls.map((one) => one.arguments)).not.toEqual(['{"a":2}'])
  })
})

describe('an error in a 200 is one, with its words', () => {
  const words = 'CUDA out of memory'
  const event = (name: string, data: string) => `event: ${name}\ndata: ${data}\n\n`
  test.each<[title: string, frames: readonly Frame[], code?: string]>([
    ['named so, with a detail', [says('Hel'), event('error', JSON.stringify({ detail: words })), done]],
    ['named so, with a message', [says('Hel'), event('exception', JSON.stringify({ message: words })), done]],
    ['named so, of plain words', [says('Hel'), event('error', words), done]],
    [
      'in a field of its own, as llama.cpp sends it',
      [says('Hel'), `error: {"code":500,"message":"${words}"}\n\n`, done],
    ],
    ['as a line of JSON alone', [says('Hel'), `{"error":{"message":"${words}"}}\n\n`, done]],
    ["in Groq's own part", [says('Hel'), delta({}, null, { x_groq: { error: words } }), done]],
    ['beside an empty list of choices', [says('Hel'), { choices: [], code: 500, message: words }, done]],
    ['in a list', [JSON.stringify([{ error: { code: 500, message: words } }])]],
    ['of a message alone', [JSON.stringify({ message: words })]],
    ['of a detail alone', [JSON.stringify({ detail: words, choices: null })]],
    ['that says it is no success', [JSON.stringify({ success: false, message: words })]],
    ['that says so in its status', [JSON.stringify({ status: 'error', msg: words })]],
    ['of an exception of AWS', [JSON.stringify({ __type: 'ModelErrorException', message: words })]],
    ['with a statusCode', [JSON.stringify({ statusCode: 429, message: words })], 'model_rate_limited'],
    [
      "that Gemini's compatible endpoint calls a filter",
      [says(''), delta({}, 'function_call_filter: MALFORMED_FUNCTION_CALL', { id: words }), done],
    ],
  ])('%s', async (_, frames, code) => {
    const failure = await failureOf(openCall(toBody(frames)))
    const isNamed = JSON.stringify(frames).includes('function_call_filter')
    expect(failure.code).toMatch(code ?? /^model_(unavailable|bad_reply)$/)
    expect(wholeOf(failure).message).toContain(isNamed ? 'MALFORMED_FUNCTION_CALL' : words)
  })

  test('of an event named so without words', async () => {
    await failureOf(openCall(toBody([says('Hel'), event('error', '{}'), done])))
  })
})
