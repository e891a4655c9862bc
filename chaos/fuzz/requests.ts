import fc from 'fast-check'
import { hugeBodies, type MalformedBody, malformedBodies } from './bodies.ts'
import type { Operation } from './operations.ts'
import type { RawRequest } from './raw-exchange.ts'
import { type Schema, shapedBodies, shapesOf } from './shapes.ts'
import { framed, type Header, type Travel, travel } from './travel.ts'

/** A request of the campaign, and what is known of it beforehand. */
export type FuzzRequest = RawRequest & {
  /** For people: what was sent, in short. */
  what: string
  method: string
  /** The field that was spoilt; a refusal for its content has to name it. */
  at?: string
  /** The answer is in OpenAI's shape. */
  isOpenAi?: boolean
}

/** Ids that exist, so that what is spoilt gets as far as it can. */
export type Known = { token: string; ids: readonly string[] }

const oddSegment = fc.oneof(
  fc.constantFrom(
    '%',
    '%00',
    '%ff',
    '%2F',
    '..',
    '.',
    '%2e%2e',
    ':id',
    '*',
    '%ED%A0%80',
    '%F0%9F%92%A9',
    'a%0d%0ax: y',
    '9'.repeat(400),
    'a'.repeat(9000),
    'wait',
    '__proto__',
    '{id}',
    '~',
    ';a=b',
    'é',
  ),
  fc.string({ unit: 'binary', maxLength: 20 }).map((text) => encodeURIComponent(text.toWellFormed())),
)
const oddValue = fc.oneof(
  fc.constantFrom(
    '',
    '0',
    '-1',
    '1e3',
    '201',
    '99999999999999999999',
    'true',
    'null',
    '[]',
    '%00',
    '%zz',
    '%ff%fe',
    '+',
    'a b',
    'queued',
    'x'.repeat(2000),
  ),
  fc.string({ unit: 'binary', maxLength: 20 }).map((text) => encodeURIComponent(text.toWellFormed())),
)
/** What may stand in a header line for a client that checks nothing: any byte but line ends and NUL. */
const oddHeader = fc.oneof(
  fc.constantFrom(
    '',
    '-1',
    '0',
    '1.5',
    '2147483648',
    'abc',
    '1, 2',
    '\u00ff\u00fe',
    '"',
    'x'.repeat(300),
    'x'.repeat(20_000),
    '💩',
  ),
  fc.uint8Array({ maxLength: 30 }).map((bytes) =>
    Buffer.from(bytes)
      .toString('latin1')
      .replaceAll(/[\0\r\n]/g, '?'),
  ),
)
const rarely = <T>(usual: T, odd: fc.Arbitrary<T>, oneIn: number): fc.Arbitrary<T> =>
  fc.oneof({ weight: oneIn - 1, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: odd })

const pathOf = ({ path }: Operation, { ids }: Known): fc.Arbitrary<string> => {
  const segment = rarely('', oddSegment, 4).chain((odd) =>
    odd ? fc.constant(odd) : fc.constantFrom(...ids, 'none'),
  )
  const holes = path.split(/(\{[^}]+\})/)
  return fc
    .tuple(...holes.map((part) => (part.startsWith('{') ? segment : fc.constant(part))))
    .chain((parts) =>
      rarely(
        parts.join(''),
        fc.tuple(fc.constant(parts.join('')), oddSegment).map((both) => both.join('/')),
        30,
      ),
    )
}

const queryOf = ({ query }: Operation): fc.Arbitrary<string> =>
  fc
    .array(fc.tuple(fc.constantFrom(...query, 'limit', '__proto__', 'zz', '%00'), oddValue), { maxLength: 3 })
    .chain((pairs) => rarely('', fc.constant(pairs.map((pair) => pair.join('=')).join('&')), 3))
    .map((text) => (text ? `?${text}` : ''))

const methods = [
  'GET',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'QUERY',
  'get',
  'BREW',
]

const headersOf = (operation: Operation, { token }: Known): fc.Arbitrary<Header[]> => {
  const usual: Header[] = [
    ['host', '127.0.0.1'],
    ['authorization', `Bearer ${token}`],
    ['connection', 'close'],
  ]
  const names = [
    ...operation.headers,
    'last-event-id',
    'idempotency-key',
    'x-request-id',
    'authorization',
    'accept',
    'host',
    'cookie',
    'range',
    'if-none-match',
    'origin',
    'expect',
    'upgrade',
    'content-type',
    'content-encoding',
    'x-forwarded-for',
    '__proto__',
  ]
  const odd = fc.array(fc.tuple(fc.constantFrom(...names), oddHeader), { minLength: 1, maxLength: 3 })
  const many = fc.constant(Array.from({ length: 500 }, (_, n): Header => [`x-many-${n}`, 'y'.repeat(20)]))
  return fc.oneof(
    { weight: 12, arbitrary: fc.constant(usual) },
    { weight: 6, arbitrary: odd.map((more): Header[] => [...usual, ...more]) },
    { weight: 1, arbitrary: many.map((more): Header[] => [...usual, ...more]) },
    { weight: 1, arbitrary: fc.constant(usual.slice(0, 1)) },
  )
}

/** A request before it is bytes. */
type Draft = {
  operation: Operation
  method: string
  path: string
  query: string
  headers: readonly Header[]
  spoilt: MalformedBody
  travel: Travel
}
const whole: Travel = { pieces: 1, until: 1, length: 'right' }
const withoutBody: MalformedBody = { what: 'no body', bytes: Buffer.alloc(0) }

/** A request for one of the operations with something spoilt: path, query, headers, method, body, or how it travels. */
export const requestsTo = (
  operations: readonly Operation[],
  known: Known,
  huge = false,
): fc.Arbitrary<FuzzRequest> =>
  fc
    // those that take a body more often: there is more to spoil
    .constantFrom(...operations, ...operations.flatMap((one) => (one.body ? [one, one, one] : [])))
    .chain((operation) => {
      const bodies = (huge ? hugeBodies : malformedBodies)(operation.body ?? {})
      return fc.record<Draft>({
        operation: fc.constant(operation),
        method: rarely(operation.method, fc.constantFrom(...methods), 20),
        path: pathOf(operation, known),
        query: queryOf(operation),
        headers: headersOf(operation, known),
        spoilt: operation.body || huge ? bodies : rarely(withoutBody, bodies, 5),
        travel: huge ? fc.constant(whole) : travel,
      })
    })
    .map(toRequest)

/** A value of a shape as it is written in a path, a query, a header or a form. */
const toText = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
const maxParameterChars = 20_000

const toForm = (body: unknown): MalformedBody => {
  const fields = typeof body === 'object' && body !== null ? Object.entries(body) : []
  const parts = fields.map(
    ([name, value]) => `--zz\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${toText(value)}\r\n`,
  )
  return {
    what: 'a form',
    bytes: Buffer.from(`${parts.join('')}--zz--\r\n`),
    headers: { 'content-type': 'multipart/form-data; boundary=zz' },
  }
}

/** A request for one of the operations with one field, of its body or beside it, at or past what its schema says. */
export const shapedRequestsTo = (
  operations: readonly Operation[],
  known: Known,
  root: Schema,
): fc.Arbitrary<FuzzRequest> => {
  const places = operations.flatMap((operation) => [
    ...(operation.schema ? [{ operation, schema: operation.schema, parameter: null }] : []),
    ...operation.parameters.map((parameter) => ({ operation, schema: parameter.schema, parameter })),
  ])
  const usual: Header[] = [
    ['host', '127.0.0.1'],
    ['authorization', `Bearer ${known.token}`],
    ['connection', 'close'],
  ]
  return fc
    .constantFrom(...places)
    .chain(({ operation, schema, parameter }) => {
      const valid = operation.body ?? {}
      const [id = ''] = known.ids
      const plain = {
        ...{ operation, method: operation.method, query: '', headers: usual, travel: whole },
        path: operation.path.replaceAll(/\{[^}]+\}/g, id),
        spoilt: operation.body ? { what: '', bytes: Buffer.from(JSON.stringify(valid)) } : withoutBody,
      }
      if (!parameter)
        return shapedBodies(valid, schema, root).map(({ what, value, at }): Draft => {
          const { bytes, headers } = operation.isForm
            ? toForm(value)
            : { bytes: Buffer.from(JSON.stringify(value)), headers: {} }
          return {
            ...plain,
            spoilt: { what, bytes, headers: headers ?? {}, ...(at !== undefined && { at }) },
          }
        })
      return fc.constantFrom(...shapesOf(schema, root)).map(({ what, value }): Draft => {
        const text = toText(value).slice(0, maxParameterChars).toWellFormed()
        const spoilt = { ...plain.spoilt, what: `${what} as ${parameter.in} ${parameter.name}` }
        const inUrl = encodeURIComponent(text)
        if (parameter.in === 'path')
          return {
            ...plain,
            spoilt,
            path: operation.path.replace(`{${parameter.name}}`, () => inUrl).replaceAll(/\{[^}]+\}/g, id),
          }
        if (parameter.in === 'query') return { ...plain, spoilt, query: `?${parameter.name}=${inUrl}` }
        const line = text.replaceAll(/[\0\r\n]/g, '?')
        return { ...plain, spoilt, headers: [...usual, [parameter.name, line]] }
      })
    })
    .map(toRequest)
}

const toRequest = ({
  operation,
  method,
  path,
  query,
  headers,
  spoilt,
  travel: { pieces, until, length },
}: Draft): FuzzRequest => {
  const wire = framed(spoilt.bytes, length)
  const type: Header[] = spoilt.bytes.length > 0 ? [['content-type', 'application/json']] : []
  const labels = Object.entries(spoilt.headers ?? {})
  const lines = [
    ...headers,
    ...(labels.some(([name]) => name === 'content-type') ? [] : type),
    ...labels,
    ...wire.headers,
  ]
  const isRead = operation.body !== null && method === operation.method && length === 'right' && until === 1
  const head = `${method} ${path}${query} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
  return {
    what: `${method} ${path.slice(0, 80)}${query.slice(0, 80)} with ${spoilt.what}, length ${length}${until < 1 ? ', cut off' : ''}`,
    method,
    head: Buffer.from(head, 'latin1'),
    body: wire.body,
    pieces,
    until: spoilt.bytes.length > 0 ? until : 1,
    isOpenAi: operation.isOpenAi,
    ...(isRead && !operation.isOpenAi && spoilt.at !== undefined && { at: spoilt.at }),
  }
}
