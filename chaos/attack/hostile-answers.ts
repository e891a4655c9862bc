import type { IncomingMessage, ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { addresses } from './addresses.ts'

/** Every way in which a hostile vendor answers, by name. */
type Say = (response: ServerResponse, request: IncomingMessage) => void

const mega = 1024 * 1024
const body =
  (status: number, text: () => string | Buffer, headers: Record<string, string | string[]> = {}): Say =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text())
const completion = (
  message: object,
  usage: unknown = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
) =>
  JSON.stringify({
    id: 'x',
    object: 'chat.completion',
    choices: [{ index: 0, finish_reason: 'stop', message }],
    usage,
  })
const ok = (content: unknown, more: object = {}): Say =>
  body(200, () => completion({ role: 'assistant', content, ...more }))
const delta = (delta: object): string => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`
/** Writes as fast as the other side reads, for ever or so many times. */
const stream =
  (
    piece: (at: number) => string | Buffer,
    { times = Number.POSITIVE_INFINITY, everyMs = 0, tail = '' } = {},
  ): Say =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    let at = 0
    const next = (): void => {
      for (let n = 0; n < 200; n++) {
        if (response.destroyed) return
        if (at >= times) return void response.end(tail)
        if (everyMs > 0) {
          response.write(piece(at++))
          return void setTimeout(next, everyMs)
        }
        if (!response.write(piece(at++))) return void response.once('drain', next)
      }
      setImmediate(next)
    }
    next()
  }
const raw =
  (text: string | Buffer): Say =>
  (response) =>
    void response.socket?.end(text)
const calls = (list: unknown): Say => ok(null, { tool_calls: list })
const call = (name: unknown, args: unknown, more: object = {}) => ({
  id: 'c',
  type: 'function',
  function: { name, arguments: args },
  ...more,
})

/** Half a megabyte on which careless patterns take seconds. */
const adversarial: Record<string, string> = {
  'context window': 'context window '.repeat(35_000),
  exceed: 'exceed '.repeat(75_000),
  'maximum context': 'maximum context length '.repeat(22_000),
  spaces: ' '.repeat(mega / 2),
  braces: '{'.repeat(mega / 2),
  quotes: '"\\'.repeat(mega / 4),
  fences: '```json\n'.repeat(65_000),
  tags: '<think>'.repeat(75_000),
  keys: 'sk-'.repeat(170_000),
  urls: 'http://'.repeat(75_000),
  dashes: '-'.repeat(mega / 2),
  digits: '1'.repeat(mega / 2),
}

export const hostileAnswers: Readonly<Record<string, Say>> = {
  ...Object.fromEntries(
    Object.entries(adversarial).flatMap(([name, text]) => [
      ...[400, 413, 429, 500].map((status) => [
        `${status} with ${name}`,
        body(status, () =>
          JSON.stringify({ error: { message: text, type: text.slice(0, 2000), code: null } }),
        ),
      ]),
      [`an answer of ${name}`, ok(text)],
      [`arguments of ${name}`, calls([call('calculate', text)])],
      [`a text error of ${name}`, body(422, () => text, { 'content-type': 'text/plain' })],
      [
        `a stream of ${name}`,
        stream(() => delta({ content: text.slice(0, 64 * 1024) }), { times: 8, tail: 'data: [DONE]\n\n' }),
      ],
    ]),
  ),
  'deep JSON': body(200, () => '['.repeat(3_000_000)),
  'deep and closed': body(200, () => `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`),
  'wide JSON': body(200, () => `{"choices":[${'{},'.repeat(4_000_000)}{}]}`),
  'numbers of 12 MB': body(200, () => `{"choices":[],"x":[${'1,'.repeat(6_000_000)}1]}`),
  'a text of 40 MB': ok('x'.repeat(40 * mega)),
  '20,000 calls': calls(
    Array.from({ length: 20_000 }, (_, n) => call(`t${n}`, '{}', { index: n, id: `c${n}` })),
  ),
  'calls of one index': calls(Array.from({ length: 5000 }, () => call('calculate', '{', { index: 0 }))),
  'a call of 8 MB': calls([call('calculate', JSON.stringify({ expression: '1+'.repeat(4 * mega) }))]),
  'a call of __proto__': calls([call('__proto__', '{"__proto__":{"x":1}}'), call('constructor', '{}')]),
  'a name of 1 MB': calls([call('t'.repeat(mega), '{}')]),
  'calls that are text': calls('calculate'),
  'calls without names': calls([{ id: null }, call(null, null), call(7, 7)]),
  'arguments in an object': calls([call('calculate', { expression: '1' })]),
  'odd usage': body(200, () =>
    completion(
      { role: 'assistant', content: 'x' },
      { prompt_tokens: -5, completion_tokens: 1e308, total_tokens: 'NaN' },
    ),
  ),
  'huge usage': body(200, () =>
    completion(
      { role: 'assistant', content: 'x' },
      { prompt_tokens: 2 ** 53, completion_tokens: 2 ** 53, total_tokens: 2 ** 60 },
    ),
  ),
  'NUL and surrogates': ok('a\u0000b\ud800c'),
  'content in parts': ok(Array.from({ length: 50_000 }, () => ({ type: 'text', text: 'x' }))),
  'prototype names': body(
    200,
    () => '{"__proto__":{"choices":[]},"constructor":{"prototype":{}},"choices":null}',
  ),
  HTML: body(200, () => `<html>${'<b>'.repeat(200_000)}`, { 'content-type': 'text/html' }),
  nothing: body(200, () => ''),
  'no content': body(204, () => ''),
  'not modified': body(304, () => ''),
  'a partial answer': body(206, () => '{"choices":'),
  'UTF-16': body(200, () => Buffer.from(completion({ role: 'assistant', content: 'x' }), 'utf16le')),
  'invalid UTF-8': body(200, () => Buffer.from([0x7b, 0xff, 0xfe, 0x7d])),
  'a gzip bomb': body(200, () => gzipSync(Buffer.alloc(100 * mega, 32)), { 'content-encoding': 'gzip' }),
  'not gzip': body(200, () => 'x'.repeat(1000), { 'content-encoding': 'gzip' }),
  'a long wait': body(429, () => '{"error":{"message":"wait"}}', { 'retry-after': '99999999999' }),
  'a negative wait': body(429, () => '{"error":{"message":"wait"}}', { 'retry-after': '-5' }),
  'a wait of words': body(503, () => '{}', { 'retry-after': 'x'.repeat(4000) }),
  'many cookies': body(200, () => completion({ content: 'x' }), {
    'set-cookie': Array.from({ length: 100 }, (_, n) => `c${n}=${'v'.repeat(80)}`),
  }),
  'half a megabyte of headers': raw(`HTTP/1.1 200 OK\r\n${`x-a: ${'y'.repeat(1000)}\r\n`.repeat(500)}\r\n{}`),
  'no HTTP': raw(Buffer.alloc(100_000, 7)),
  'HTTP 0.9': raw('hello'),
  'many continues': raw('HTTP/1.1 100 Continue\r\n\r\n'.repeat(20_000)),
  'another protocol': raw('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n'),
  'a false length': raw(`HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n{"choices":[]}`),
  'a negative length': raw(`HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n{}`),
  'bad chunks': raw('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}'),
  'a chunk without end': raw('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffff\r\n{'),
  'a reset': (response) => void response.socket?.resetAndDestroy(),
  silence: () => {},
  'headers and silence': (response) =>
    void response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders(),
  'a drip': stream(() => 'd', { everyMs: 300 }),
  'a drip of events': stream(() => delta({ content: '.' }), { everyMs: 300 }),
  'comments without end': stream(() => ': wait\n\n'),
  'events without end': stream(() => delta({ content: 'word ' })),
  'reasoning without end': stream(() => delta({ reasoning_content: 'hm ' })),
  'empty events without end': stream(() => 'data: {}\n\n'),
  'empty lines without end': stream(() => '\n'.repeat(4096)),
  'a line without end': stream(() => 'x'.repeat(64 * 1024)),
  'a call without end': stream((at) =>
    delta({
      tool_calls: [
        {
          index: 0,
          ...(at === 0 && { id: 'c' }),
          function: { ...(at === 0 && { name: 'calculate' }), arguments: '{"a":"'.repeat(100) },
        },
      ],
    }),
  ),
  'calls without end': stream((at) =>
    delta({ tool_calls: [{ index: at, id: `c${at}`, function: { name: 'calculate', arguments: '{}' } }] }),
  ),
  'a far index': stream(
    () =>
      delta({ tool_calls: [{ index: 4_000_000_000, id: 'c', function: { name: 'x', arguments: '{}' } }] }),
    { times: 3, tail: 'data: [DONE]\n\n' },
  ),
  'events that are no JSON': stream(() => 'data: {"a\n\n', { times: 5000 }),
  'one letter at a time': stream(() => delta({ content: 'x' }), { times: 60_000, tail: 'data: [DONE]\n\n' }),
  'an error in the stream': stream(
    () => `data: {"error":{"message":"${'context window '.repeat(30_000)}"}}\n\n`,
    { times: 1 },
  ),
  ...Object.fromEntries(
    addresses.map(({ host }) => [
      `to ${host}`,
      (response: ServerResponse, request: IncomingMessage) =>
        response
          .writeHead(307, {
            location: `http://${host}:${request.socket.localPort}/caught/v1/chat/completions`,
          })
          .end(),
    ]),
  ),
  'to a file': body(302, () => '', { location: 'file:///etc/passwd' }),
  'to itself': (response, request) =>
    response.writeHead(307, { location: `http://127.0.0.1:${request.socket.localPort}${request.url}` }).end(),
}
