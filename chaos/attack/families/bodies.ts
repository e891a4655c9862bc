import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib'
import { operationsOf } from '../../fuzz/operations.ts'
import type { HttpInput, Input, SocketInput, Target } from '../input.ts'

/** Bodies that are too large, too slow, too deep, packed or broken, for every operation that takes one. */
export const bodies = (target: Target): Input[] => [...shaped(target), ...stalled(target)]

type Shape = { bytes: (valid: string) => string | Buffer; headers?: Record<string, string>; at?: string }
const added = (valid: string, text: string): string =>
  `${valid.slice(0, -1)}${valid === '{}' ? '' : ','}${text}}`
const bomb = Buffer.alloc(40_000_000, 32)

const shapes: Record<string, Shape> = {
  '20,000 unknown fields': {
    bytes: (valid) => added(valid, Array.from({ length: 20_000 }, (_, n) => `"k${n}":1`).join()),
  },
  '200,000 unknown fields': {
    bytes: (valid) => added(valid, Array.from({ length: 200_000 }, (_, n) => `"k${n}":1`).join()),
  },
  '200,000 fields of metadata': {
    bytes: (valid) =>
      added(valid, `"metadata":{${Array.from({ length: 200_000 }, (_, n) => `"k${n}":1`).join()}}`),
  },
  '49,000 empty objects': { bytes: (valid) => added(valid, `"metadata":{"a":[${'{},'.repeat(48_990)}{}]}`) },
  '40,000 broken messages': {
    bytes: (valid) =>
      added(valid, `"messages":[${'{"role":"user","content":[{"type":"x"}]},'.repeat(40_000)}{}]`),
  },
  'a field of 1 MB name': { bytes: (valid) => added(valid, `"${'k'.repeat(1_000_000)}":1`) },
  'a list of 400,000': { bytes: (valid) => added(valid, `"zz":[${'0,'.repeat(400_000)}0]`) },
  'lists in lists': { bytes: (valid) => added(valid, `"zz":${'['.repeat(50_000)}${']'.repeat(50_000)}`) },
  'objects in objects': {
    bytes: (valid) => added(valid, `"zz":${'{"a":'.repeat(95)}1${'}'.repeat(95)}`),
    at: '/zz',
  },
  'a __proto__': { bytes: (valid) => added(valid, '"__proto__":{"admin":true}'), at: '/__proto__' },
  'a constructor': {
    bytes: (valid) => added(valid, '"constructor":{"prototype":{"x":1}}'),
    at: '/constructor',
  },
  'a number of 100,000 digits': { bytes: (valid) => added(valid, `"zz":${'9'.repeat(100_000)}`), at: '/zz' },
  'an infinite number': { bytes: (valid) => added(valid, '"zz":1e999999'), at: '/zz' },
  'a NUL in a name': { bytes: (valid) => added(valid, '"z\\u0000z":1') },
  'half a character': { bytes: (valid) => added(valid, '"zz":"\\ud800"'), at: '/zz' },
  'invalid UTF-8': {
    bytes: (valid) => Buffer.concat([Buffer.from(valid.slice(0, -1)), Buffer.from([0xff, 0xc0, 0x7d])]),
  },
  'a list as the body': { bytes: (valid) => `[${valid}]` },
  'a text as the body': { bytes: (valid) => JSON.stringify(valid) },
  'null as the body': { bytes: () => 'null' },
  'two bodies': { bytes: (valid) => valid + valid },
  'a gzip bomb': { bytes: () => packed.gzip, headers: { 'content-encoding': 'gzip' } },
  'a deflate bomb': { bytes: () => packed.deflate, headers: { 'content-encoding': 'deflate' } },
  'a brotli bomb': { bytes: () => packed.brotli, headers: { 'content-encoding': 'br' } },
  'a bomb in a bomb': { bytes: () => packed.gzip, headers: { 'content-encoding': 'gzip, gzip, gzip' } },
  'a form': {
    bytes: () => 'a=1&'.repeat(100_000),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  },
  'a form of 20,000 parts': {
    bytes: () => `${'--x\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n'.repeat(20_000)}--x--`,
    headers: { 'content-type': 'multipart/form-data; boundary=x' },
  },
  'a form without end': {
    bytes: () => `--x\r\n${'a'.repeat(200_000)}`,
    headers: { 'content-type': 'multipart/form-data; boundary=x' },
  },
  XML: {
    bytes: () => '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>',
    headers: { 'content-type': 'application/xml' },
  },
}

const packed = {
  gzip: gzipSync(bomb),
  deflate: deflateSync(bomb),
  brotli: brotliCompressSync(bomb, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
}

const shaped = (target: Target): HttpInput[] =>
  operationsOf(target.document, {}).flatMap(({ method, path, body }) => {
    if (body === null) return []
    const filled = path.replaceAll(/\{\w+\}/g, 'none')
    return Object.entries(shapes).map(
      ([name, { bytes, headers = {}, at }]): HttpInput => ({
        kind: 'http',
        name: `${method} ${path} with ${name}`,
        as: path.startsWith('/admin') ? 'admin' : 'flooder',
        method,
        path: filled,
        headers: { 'content-type': 'application/json', ...headers },
        body: () => bytes(JSON.stringify(body)),
        status: 'refused',
        ...(at && { at }),
        withinMs: 10_000,
      }),
    )
  })

/** A body without progress ends after half a minute; a head, by node's own limit, after one and a half. */
const bodyMs = 45_000
const headMs = 95_000
const times = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at))

const stalled = ({ tokens }: Target): SocketInput[] => {
  const head = (more: string, path = '/v1/runs'): string =>
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${tokens.flooder}\r\ncontent-type: application/json\r\n${more}\r\n`
  const socket = (name: string, start: string, piece: Buffer, pieces: number, everyMs = 0): SocketInput => ({
    kind: 'socket',
    name,
    head: start,
    piece,
    pieces,
    everyMs,
    withinMs: start.startsWith('POST') ? bodyMs : headMs,
  })
  const much = Buffer.alloc(1024 * 1024, 0x20)
  const length = `content-length: ${32 * 1024 * 1024}\r\n`
  return [
    ...times(50, (at) => socket(`upload ${at} of 31 MB that stalls`, head(length), much, 31)),
    ...times(10, (at) => socket(`upload ${at} that never begins`, head(length), much, 0)),
    ...times(5, (at) =>
      socket(`upload ${at} of a byte now and then`, head(length), Buffer.from(' '), 10_000, 400),
    ),
    ...times(5, (at) =>
      socket(
        `body ${at} in chunks without end`,
        head('transfer-encoding: chunked\r\n'),
        Buffer.concat([Buffer.from('100000\r\n'), much, Buffer.from('\r\n')]),
        300,
      ),
    ),
    ...times(10, (at) =>
      socket(
        `head ${at} without end`,
        'GET /v1/runs HTTP/1.1\r\nhost: 127.0.0.1\r\n',
        Buffer.from('x-a: b\r\n'),
        10_000,
        400,
      ),
    ),
    ...times(3, (at) =>
      socket(
        `head ${at} of many lines`,
        'GET /v1/runs HTTP/1.1\r\nhost: 127.0.0.1\r\n',
        Buffer.from('x-a: b\r\n'),
        100_000,
      ),
    ),
    ...times(100, (at) => socket(`connection ${at} that says nothing`, '', much, 0)),
  ]
}
