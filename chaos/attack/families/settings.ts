import { operationsOf } from '../../fuzz/operations.ts'
import { type HttpInput, json, type Target } from '../input.ts'

/** What an admin, or a script on the admin's page, could set: every field at and past its edges, and rows that compute. */
export const settings = (target: Target): HttpInput[] => [...edges(target), ...formats(), ...rows(target)]

type Schema = {
  [key: string]: unknown
  properties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
  $ref?: string
}
type Operation = { requestBody?: { content: { 'application/json'?: { schema: Schema } } } }

/** The fields of a schema, each with its own one: of the objects inside as well. */
const fieldsOf = (
  schema: Schema,
  components: Record<string, Schema>,
  path: readonly string[] = [],
): [readonly string[], Schema][] => {
  if (path.length > 3) return []
  const resolved = schema.$ref ? (components[schema.$ref.split('/').at(-1) ?? ''] ?? {}) : schema
  const inner = Object.entries(resolved.properties ?? {}).flatMap(([name, field]) =>
    fieldsOf(field, components, [...path, name]),
  )
  const either = (resolved.anyOf ?? []).flatMap((one) => fieldsOf(one, components, path))
  return [...(path.length > 0 ? [[path, resolved] as [readonly string[], Schema]] : []), ...inner, ...either]
}

const past = (schema: Schema): [what: string, value: unknown, isPast: boolean][] => {
  const number = (name: string): number | undefined =>
    typeof schema[name] === 'number' ? schema[name] : undefined
  const found: [string, unknown, boolean][] = []
  const add = (what: string, value: unknown, isPast: boolean) => found.push([what, value, isPast])
  const [min, max, shortest, longest, most] = [
    'minimum',
    'maximum',
    'minLength',
    'maxLength',
    'maxItems',
  ].map(number)
  if (schema.type === 'integer' || schema.type === 'number') {
    if (min !== undefined) add('its least', min, false)
    if (min !== undefined) add('less than its least', min - 1, true)
    if (max !== undefined) add('its most', max, false)
    if (max !== undefined) add('more than its most', max + 1 > max ? max + 1 : max * 2, true)
    add('1e308', 1e308, schema.type === 'integer')
    add('a text', '7', true)
  }
  if (schema.type === 'string' && !schema.enum && !schema.const) {
    if (shortest) add('too short', '', true)
    if (longest !== undefined && longest <= 5_000_000) add('too long', 'x'.repeat(longest + 1), true)
    add('a NUL', 'a\u0000b', false)
    add('half a character', '\ud800', false)
    add('a prototype name', '__proto__', false)
    add('3 MB', 'x'.repeat(3_000_000), false)
    add('a template', '{{7*7}}<%= 7 %>', false)
  }
  if (schema.type === 'array') {
    if (most !== undefined) add('too many', Array(most + 1).fill('x'), true)
    add('100,000 of nothing', Array(100_000).fill(null), true)
  }
  if (schema.enum) add('another word', 'zz', true)
  return found
}

const withField = (
  body: Record<string, unknown>,
  [name = '', ...rest]: readonly string[],
  value: unknown,
): Record<string, unknown> => ({
  ...body,
  [name]: rest.length === 0 ? value : withField((body[name] ?? {}) as Record<string, unknown>, rest, value),
})

/** Every field of every body of the document, at each edge that it has. */
const edges = (target: Target): HttpInput[] => {
  const { paths, components } = target.document as {
    paths: Record<string, Record<string, Operation>>
    components: { schemas: Record<string, Schema> }
  }
  return operationsOf(target.document, {}).flatMap(({ method, path, body }) => {
    const schema = paths[path]?.[method.toLowerCase()]?.requestBody?.content['application/json']?.schema
    if (!schema || body === null) return []
    const as = path.startsWith('/admin') ? ('admin' as const) : ('mallory' as const)
    return fieldsOf(schema, components.schemas).flatMap(([field, its]) =>
      past(its).map(
        ([what, value, isPast]): HttpInput => ({
          kind: 'http',
          name: `${method} ${path} with ${field.join('.')}: ${what}`,
          as,
          method,
          path: path.replaceAll(/\{(\w+)\}/g, (_, name) =>
            name === 'vendor_id' ? target.hostile.vendor_id : 'none',
          ),
          body: json(withField(body, field, value)),
          status: isPast ? 'refused' : 'handled',
          // it waits a minute for a run
          ...(path === '/v1/runs/wait' && { withinMs: 70_000 }),
        }),
      ),
    )
  })
}

const fieldsNamed = (count: number): object =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 1]))

/** Expressions, templates, samples and schemas that compute for long, or reach for what is not theirs. */
const formats = (): HttpInput[] => {
  const base = { name: 'attack', category: 'text', paths: { text: 'a' } }
  const post = (name: string, more: object): HttpInput => ({
    kind: 'http',
    name: `a format with ${name}`,
    as: 'admin',
    method: 'POST',
    path: '/admin/v1/response-formats',
    body: json({ ...base, ...more, name: `attack ${name}`.slice(0, 100) }),
    status: 'handled',
    withinMs: 5000,
  })
  const expressions = [
    '('.repeat(5000) + 'a' + ')'.repeat(5000),
    'a.'.repeat(4000) + 'b',
    '[*]'.repeat(3000),
    'a || '.repeat(3000) + 'b',
    ...'@.constructor|__proto__.x|`"`|&a|sort_by(@, &a)|map(&map(&map(&@, @), @), @)|join("", @)|a[::0]|a[99999999999999999]|$'.split(
      '|',
    ),
    'to_string(@)'.repeat(20),
    '\u0000',
  ]
  const raw = Array.from({ length: 300 }, (_, n) => ({ a: 'x'.repeat(100), b: n }))
  const nested = '[*].[*]'.repeat(6).replace(/^/, '@')
  const templates = [
    { encoding: 'json', body: '{{messages}}'.repeat(10_000) },
    { encoding: 'json', body: { a: '{{constructor.constructor("return process")()}}' } },
    { encoding: 'json', body: JSON.parse(`${'{"a":'.repeat(90)}1${'}'.repeat(90)}`) },
    { encoding: 'json', body: { __proto__: null, a: '{{__proto__}}' } },
    {
      encoding: 'multipart',
      body: Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`f${n}`, '{{prompt}}'])),
    },
  ]
  const schemas = [
    { type: 'string', pattern: '^(a+)+$' },
    { $ref: '#' },
    { $ref: 'http://127.0.0.1/x' },
    { allOf: Array.from({ length: 500 }, () => ({ $ref: '#' })) },
    JSON.parse(`${'{"items":'.repeat(90)}{}${'}'.repeat(90)}`),
    { enum: Array.from({ length: 100_000 }, (_, n) => n) },
    { patternProperties: { '(x+x+)+y': {} } },
    { const: '__proto__', properties: { constructor: {} } },
  ]
  return [
    ...[...expressions, nested].map((text) =>
      post(`the path ${text.slice(0, 30)}`, { paths: { text }, samples: [{ raw, expected: {} }] }),
    ),
    ...templates.map((request, at) => post(`the template ${at}`, { request })),
    ...schemas.map((schema, at) =>
      post(`the schema ${at}`, { schema, samples: [{ raw: 'a'.repeat(40).concat('!'), expected: {} }] }),
    ),
    ...[
      raw,
      Array(100_000).fill(1),
      JSON.parse(`${'['.repeat(95)}${']'.repeat(95)}`),
      fieldsNamed(50_000),
      'x'.repeat(2_000_000),
    ].map((raw, at) => post(`the sample ${at}`, { samples: [{ raw, expected: { text: 'x' } }] })),
  ]
}

/** Rows of the registry that mean no good. */
const rows = ({ hostile: { vendor_id } }: Target): HttpInput[] => {
  const post = (
    name: string,
    path: string,
    body: object,
    status: HttpInput['status'] = 'refused',
  ): HttpInput => ({ kind: 'http', name, as: 'admin', method: 'POST', path, body: json(body), status })
  const endpoint = `/admin/v1/vendors/${vendor_id}/endpoints`
  const valid = { name: 'e', base_url: 'https://api.example.org/v1', protocol: 'openai' }
  const urls =
    'file:///etc/passwd ftp://example.org javascript:1 http://user:pass@example.org http://example.org\n/x //example.org x http://[ ' +
    'http://example.org:99999 unix:/var/run/docker.sock http://①②⑦.0.0.1/'
  const headers = [
    ...['host', 'content-length', 'transfer-encoding', 'connection', 'proxy-authorization', 'x a', ''].map(
      (name) => ({ [name]: 'b' }),
    ),
    ...['b\r\nx-c: d', 'é', 'x'.repeat(5000)].map((value) => ({ 'x-a': value })),
  ]
  const secrets = ['', ' ', 'a b', 'a\r\nx: y', 'é', '\u0000', 'x'.repeat(10_001)]
  const large: [what: string, path: string, body: object][] = [
    ['a user of 200,000 fields', 'users', { user_id: 'wide', profile: fieldsNamed(200_000) }],
    ['a user of 20 MB', 'users', { user_id: 'large', profile: { about: 'x'.repeat(20_000_000) } }],
    ['a scenario of 20 MB', 'scenarios', { name: 'large', prompts: { planner: 'x'.repeat(20_000_000) } }],
    ['a scenario of 10,000 examples', 'scenarios', { name: 'many', examples: Array(10_000).fill('x') }],
  ]
  return [
    ...urls
      .split(' ')
      .map((base_url) => post(`an endpoint at ${base_url}`, endpoint, { ...valid, base_url })),
    ...headers.map((one) =>
      post(`an endpoint with the header ${JSON.stringify(one).slice(0, 40)}`, endpoint, {
        ...valid,
        headers: one,
      }),
    ),
    ...secrets.map((secret) =>
      post(`a key ${JSON.stringify(secret).slice(0, 20)}`, `/admin/v1/vendors/${vendor_id}/keys`, {
        label: 'k',
        secret,
      }),
    ),
    ...['planner', 'x'].map((role) =>
      post(`a route of 10,000 models for ${role}`, '/admin/v1/routes', {
        role,
        models: Array.from({ length: 10_000 }, (_, n) => ({ model: `m${n}` })),
      }),
    ),
    ...['__proto__', 'constructor', '_mason', '../x', 'a b', ''].map((id) =>
      post(`a business ${id}`, '/admin/v1/businesses', { id }, id === 'constructor' ? 'handled' : 'refused'),
    ),
    ...large.map(([what, path, body]) => post(what, `/admin/v1/${path}`, body)),
  ]
}
