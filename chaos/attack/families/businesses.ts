import { operationsOf } from '../../fuzz/operations.ts'
import { type Caller, type HttpInput, json, type Target } from '../input.ts'

/** What another business may never read, change or find out: every route, with ids that are right, guessed or misspelled. */
export const businesses = (target: Target): HttpInput[] => [
  ...routes(target),
  ...lists(target),
  ...bodiesThatName(target),
  ...tokens(target),
]

const outsiders = ['mallory', 'reader', 'submitter', 'stranger', 'anonymous'] as const

/** Spellings of an id that a careless router or query takes for the id. */
const spellings: Record<string, (id: string) => string> = {
  'as it is': (id) => id,
  'in capitals': (id) => id.toUpperCase(),
  'with a dot': (id) => `${id}.`,
  'with a space': (id) => `${id}%20`,
  'with a NUL': (id) => `${id}%00`,
  'with a wildcard': () => '%25',
  'as a path': (id) => `..%2f${id}`,
  'in another tenant': (id) => `victim:${id}`,
  'as a list': (id) => `${id},${id}`,
  'by its business': (id) => `${id}?business_id=victim`,
  'by its business in two ways': (id) => `${id}?business_id=mallory&business_id=victim`,
}

const idsFor = (path: string, { victim }: Target): Record<string, string> => ({
  id: path.startsWith('/v1/sessions')
    ? victim.session
    : path.startsWith('/v1/memories')
      ? victim.memory
      : path.startsWith('/v1/runs')
        ? victim.run
        : victim.key,
  action: '1',
  sha256: victim.blob,
  vendor_id: 'ven_x',
})

const routes = (target: Target): HttpInput[] =>
  operationsOf(target.document, {}).flatMap(({ method, path, body }) => {
    if (!path.startsWith('/v1/') && !path.startsWith('/admin/')) return []
    const isAdmin = path.startsWith('/admin/')
    const hasId = path.includes('{')
    if (!isAdmin && !hasId) return []
    const ids = idsFor(path, target)
    const used = isAdmin ? { 'as it is': spellings['as it is'] as (id: string) => string } : spellings
    return outsiders.flatMap((as) =>
      Object.entries(used).map(([spelling, spell]): HttpInput => {
        // the last of them is spelled in another way: that is what the route looks for
        const last = path.lastIndexOf('{')
        const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string, at: number) =>
          at === last && !spelling.startsWith('by its') ? spell(ids[name] ?? 'x') : (ids[name] ?? 'x'),
        )
        return {
          kind: 'http',
          name: `${method} ${path} of another business as ${as}, id ${spelling}`,
          as,
          method,
          path: spelling.startsWith('by its') ? spell(filled) : filled,
          ...(body && { body: json({ ...body, ...forged(path) }) }),
          // the id of a user is the business's own text: every business has that user, and its own passkeys of them
          status: path.startsWith('/v1/users/') ? 'handled' : 'refused',
        }
      }),
    )
  })

/** Bodies that would work if the run were theirs. */
const forged = (path: string): object =>
  path.endsWith('/fork') ? { action_id: 1 } : path.endsWith('/input') ? { request_id: 'x', answer: true } : {}

/** Lists by the victim's ids and cursors: they answer, but with nothing of the victim's. */
const lists = ({ victim }: Target): HttpInput[] => {
  const paths = [
    ...['user_id', 'session_id', 'status'].flatMap((name) =>
      [victim.user, victim.session, 'completed', '%25', "'%20OR%20'1'='1"].map(
        (value) => `/v1/runs?${name}=${value}`,
      ),
    ),
    ...[victim.user, '%25', '_', '*'].flatMap((user) => [
      `/v1/sessions?user_id=${user}`,
      `/v1/memories?user_id=${user}`,
      `/v1/memories?user_id=${user}&query=secret`,
      `/v1/memories/export?user_id=${user}`,
    ]),
    ...['runs', 'sessions', `memories`].flatMap((list) =>
      [
        victim.cursor,
        Buffer.from(JSON.stringify([victim.run])).toString('base64url'),
        'x'.repeat(3000),
        '%00',
        '{}',
      ].map((cursor) => `/v1/${list}?user_id=${victim.user}&cursor=${cursor}`),
    ),
    '/v1/models',
    `/v1/models?user=${victim.user}`,
    '/v1/models/victim-model',
  ]
  return (['mallory', 'reader'] as const).flatMap((as) =>
    paths.map(
      (path): HttpInput => ({
        kind: 'http',
        name: `GET ${path.slice(0, 60)} as ${as}`,
        as,
        method: 'GET',
        path,
        status: 'handled',
      }),
    ),
  )
}

/** What names the victim in a body or query, and what would be mixed up with theirs. */
const bodiesThatName = ({ victim }: Target): HttpInput[] => {
  const run = { prompt: 'Say all you know.', user_id: victim.user }
  const post = (name: string, body: object, status: HttpInput['status'], headers = {}): HttpInput => ({
    kind: 'http',
    name,
    as: 'mallory',
    method: 'POST',
    path: '/v1/runs',
    headers,
    body: json(body),
    status,
  })
  const mappings = [
    `blob:${victim.blob}`,
    `../victim/${victim.blob}`,
    '/etc/passwd',
    'file:///etc/passwd',
    '%2e%2e/victim',
  ]
  return [
    ...['victim', 'Victim', 'victim ', 'default', '__proto__', '_mason', '../victim', ''].map((business_id) =>
      post(`a run for the business ${JSON.stringify(business_id)}`, { ...run, business_id }, 'refused'),
    ),
    post("a run with the victim's idempotency key", run, [202], { 'idempotency-key': victim.key }),
    post("a run in the victim's session", { ...run, session_id: victim.session }, [202]),
    ...['aliyun', 'tencent', 'aws', 'gcc', 'local'].flatMap((provider) =>
      mappings.map((path) =>
        post(
          `a file at ${provider} ${path.slice(0, 20)}`,
          { ...run, files: [{ name: 'a', type: 't', mapping: { provider, path } }] },
          'handled',
        ),
      ),
    ),
    ...['/v1/runs', '/v1/sessions?user_id=u', '/v1/memories?user_id=u', '/v1/models'].map(
      (path): HttpInput => ({
        kind: 'http',
        name: `GET ${path} for the victim`,
        as: 'mallory',
        method: 'GET',
        path: `${path}${path.includes('?') ? '&' : '?'}business_id=victim`,
        status: [403],
      }),
    ),
  ]
}

/** Tokens that are none. */
const tokens = ({ tokens: { mallory, admin } }: Target): HttpInput[] => {
  const odd = [
    '',
    ' ',
    'null',
    'undefined',
    '%00',
    mallory.slice(0, -1),
    `${mallory}x`,
    mallory.toUpperCase(),
    admin.slice(1),
    `${admin} ${admin}`,
    'x'.repeat(5000),
    "' OR 1=1 --",
    '{"$ne":1}',
    'é'.repeat(20),
  ]
  const callers: Caller = 'anonymous'
  return ['Bearer', 'bearer', 'Basic', 'Token'].flatMap((scheme) =>
    odd.map(
      (token): HttpInput => ({
        kind: 'http',
        name: `the token ${JSON.stringify(token.slice(0, 8))} as ${scheme}`,
        as: callers,
        method: 'GET',
        path: '/v1/runs',
        headers: { authorization: `${scheme} ${Buffer.from(token).toString('latin1')}` },
        status: 'refused',
      }),
    ),
  )
}
