import { gzipSync } from 'node:zlib'
import fc from 'fast-check'

/** A body made from a valid one. `at` is the field that was spoilt, where the answer has to name it. */
export type MalformedBody = { what: string; bytes: Buffer; at?: string; headers?: Record<string, string> }

type Fields = Record<string, unknown>
const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
const nested = (depth: number, open = '[', close = ']'): string => open.repeat(depth) + close.repeat(depth)
const pointerTo = (name: string): string => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`

const oddText = fc.constantFrom(
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\ud800',
  '\udc00x',
  '\u202e',
  '../../etc',
  '{{7*7}}',
  "'; DROP TABLE runs; --",
  'x'.repeat(5000),
  '💩',
  '-1',
  'NaN',
)
const oddNumber = fc.constantFrom(-1, -0, 0.1, 1e308, 2 ** 31, 2 ** 53, -(2 ** 63), Number.MIN_VALUE)
/** Values that are no object, no list of strings and no text of any format a field here asks for. */
const anyValue = fc.oneof(
  oddText,
  oddNumber,
  fc.constantFrom(null, true, [], {}, [[]], [null]),
  fc.jsonValue({ maxDepth: 4 }),
)
const oddName = fc.constantFrom(
  '__proto__',
  'constructor',
  'toString',
  '',
  'a/b',
  'a~b',
  '\u0000',
  '\ud800',
  'promt',
  'x'.repeat(300),
)
/** A name no schema has and no rule beside the schema looks at. */
const unknownName = fc.stringMatching(/^zz_[a-z]{1,8}$/)

const withText = (valid: Fields, name: string, text: string): Buffer =>
  Buffer.from(
    `${JSON.stringify(valid).slice(0, -1)}${Object.keys(valid).length > 0 ? ',' : ''}${JSON.stringify(name)}:${text}}`,
  )

/** Fields that take any JSON. */
const anyJson: ReadonlySet<string> = new Set(['answer', 'metadata', 'raw'])

/** One field of the body spoilt so that it can never check, and the field's name. */
const spoiltField = (valid: Fields): fc.Arbitrary<MalformedBody> => {
  const unknown = unknownName.map((name) => ({
    what: 'an unknown field',
    bytes: json({ ...valid, [name]: 1 }),
    at: pointerTo(name),
  }))
  const names = Object.keys(valid)
  if (names.length === 0) return unknown
  const name = fc.constantFrom(...names)
  return fc.oneof(
    unknown,
    name.map((one) => ({
      what: 'a field of another type',
      bytes: json({ ...valid, [one]: [[[1]]] }),
      ...(!anyJson.has(one) && { at: pointerTo(one) }),
    })),
    fc.constant({
      what: 'a __proto__',
      bytes: withText(valid, '__proto__', '{"admin":true}'),
      at: '/__proto__',
    }),
  )
}

/** Valid in most, with fields of any name and value, and fields in the depth replaced. */
const mixed = (valid: Fields): fc.Arbitrary<MalformedBody> =>
  fc
    .tuple(
      fc.dictionary(
        fc.oneof(
          fc.constantFrom(
            ...Object.keys(valid),
            'files',
            'output',
            'limits',
            'metadata',
            'business_id',
            'priority',
          ),
          oddName,
        ),
        anyValue,
        { maxKeys: 4 },
      ),
      fc.array(fc.constantFrom(...Object.keys(valid), 'none'), { maxLength: 1 }),
    )
    .map(([changes, dropped]) => {
      const body: Fields = { ...valid, ...changes }
      for (const name of dropped) delete body[name]
      return { what: 'odd fields', bytes: json(body) }
    })

/** The text itself spoilt: what is no JSON, or JSON that a careless reader takes for something else. */
const spoiltText = (valid: Fields): fc.Arbitrary<MalformedBody> => {
  const text = JSON.stringify(valid)
  const bytesOf = (what: string, body: string | Buffer): MalformedBody => ({ what, bytes: Buffer.from(body) })
  return fc.oneof(
    fc.nat({ max: Math.max(0, text.length - 1) }).map((at) => bytesOf('cut JSON', text.slice(0, at))),
    fc
      .tuple(fc.nat({ max: text.length }), fc.uint8Array({ minLength: 1, maxLength: 4 }))
      .map(([at, odd]) =>
        bytesOf(
          'foreign bytes inside',
          Buffer.concat([Buffer.from(text.slice(0, at)), odd, Buffer.from(text.slice(at))]),
        ),
      ),
    fc.uint8Array({ maxLength: 300 }).map((odd) => bytesOf('any bytes', Buffer.from(odd))),
    fc.json().map((other) => bytesOf('other JSON', other)),
    fc.constantFrom(
      bytesOf('trailing text', `${text}x`),
      bytesOf('two bodies', `${text}${text}`),
      bytesOf('a byte order mark', `\ufeff${text}`),
      bytesOf('UTF-16', Buffer.from(text, 'utf16le')),
      bytesOf('Latin-1', Buffer.from(text.replace('"', '"\u00e9'), 'latin1')),
      bytesOf('one quote', '"'),
      bytesOf('NaN', '{"prompt":NaN}'),
      bytesOf('comments', `/* hi */${text}`),
      bytesOf('lone surrogates as escapes', withText(valid, 'metadata', '{"a":"\\ud800","\\udc00":1}')),
      bytesOf('NUL as an escape', withText(valid, 'prompt', '"a\\u0000b"')),
      bytesOf('a field twice', withText(valid, Object.keys(valid)[0] ?? 'prompt', '"second"')),
      bytesOf('a field 1000 times', `{${Array(1000).fill('"prompt":"x"').join()}}`),
      bytesOf('a number of 5000 digits', withText(valid, 'priority', '9'.repeat(5000))),
      bytesOf('an infinite number', withText(valid, 'delay_ms', '1e99999')),
      bytesOf('deep lists', withText(valid, 'metadata', `{"a":${nested(5000)}}`)),
      bytesOf('deep objects', withText(valid, 'metadata', nested(3000, '{"a":', '}').replace('}', '1}'))),
      bytesOf('only brackets', '['.repeat(200_000)),
      bytesOf(
        'many fields',
        withText(valid, 'metadata', `{${Array.from({ length: 20_000 }, (_, n) => `"k${n}":${n}`).join()}}`),
      ),
      bytesOf(
        'many files',
        withText(valid, 'files', `[${Array(5000).fill('{"name":"a","type":"t"}').join()}]`),
      ),
    ),
  )
}

/** Bodies whose headers say something else than their bytes. */
const mislabelled = (valid: Fields): fc.Arbitrary<MalformedBody> => {
  const bytes = json(valid)
  const labelled = (what: string, headers: Record<string, string>, body = bytes): MalformedBody => ({
    what,
    bytes: body,
    headers,
  })
  return fc.constantFrom(
    labelled('gzip', { 'content-encoding': 'gzip' }, gzipSync(bytes)),
    labelled('said to be gzip', { 'content-encoding': 'gzip' }),
    labelled('an unknown encoding', { 'content-encoding': 'zstd, br' }),
    labelled(
      'a form',
      { 'content-type': 'application/x-www-form-urlencoded' },
      Buffer.from('prompt=x&user_id=u'),
    ),
    labelled(
      'many parts',
      { 'content-type': 'multipart/form-data; boundary=x' },
      Buffer.from('--x\r\n\r\n--x--'),
    ),
    labelled('no type', { 'content-type': '' }),
    labelled('a charset', { 'content-type': 'application/json; charset=utf-16le' }),
    labelled('a type of 2000 characters', { 'content-type': `application/${'x'.repeat(2000)}` }),
  )
}

/** Any spoilt body of an operation whose valid body is this. */
export const malformedBodies = (valid: Fields): fc.Arbitrary<MalformedBody> =>
  fc.oneof(
    { weight: 5, arbitrary: spoiltField(valid) },
    { weight: 6, arbitrary: mixed(valid) },
    { weight: 6, arbitrary: spoiltText(valid) },
    { weight: 2, arbitrary: mislabelled(valid) },
  )

/** Bodies of 10 MB and more: few are enough. */
export const hugeBodies = (valid: Fields): fc.Arbitrary<MalformedBody> =>
  fc.constantFrom(
    { what: 'a text of 10 MB', bytes: withText(valid, 'zz_huge', `"${'x'.repeat(10_000_000)}"`) },
    { what: 'a list of 12 MB', bytes: withText(valid, 'zz_huge', `[${'0,'.repeat(6_000_000)}0]`) },
    { what: '33 MB', bytes: withText(valid, 'zz_huge', `"${'x'.repeat(33 * 1024 * 1024)}"`) },
  )
