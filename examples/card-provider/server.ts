import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { type Operation, openBooks } from './books.ts'
import { finishPending, type PaymentRequest, perform, RefusalError } from './operations.ts'
import { createWebhooks, type WebhookSettings } from './webhooks.ts'

/** A card provider for tests and demos, with its own books; README.md lists its routes. It listens on loopback alone. */

/** How a request goes wrong: before or after the payment, with no answer, a broken one, or one that is not true. */
type Failure = 'none' | `${'fail' | 'cut' | 'hang'}_${'before' | 'after'}` | 'conflict' | 'late' | 'nonsense'

type Settings = {
  /** What happens to the next requests, in turn. */
  failures: Failure[]
  /** After those: this share of all requests fails in one of `kinds`, chosen by seed, key and attempt. */
  random: { seed: string; share: number; kinds: Failure[]; stuck?: number } | null
  /** When a `late` request acts, and when a pending payment is settled. */
  late_ms: number
  window_ms: number
  /** Added to the clock that the window goes by. */
  clock_ms: number
  webhooks: WebhookSettings
}

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '8095' },
    books: { type: 'string', default: 'card-provider.jsonl' },
    settings: { type: 'string', default: '{}' },
  },
})
const env = process.env
const apiKey = env.CARD_PROVIDER_API_KEY ?? 'sk_test_card_provider'
const webhookSecret = env.CARD_PROVIDER_WEBHOOK_SECRET ?? 'whsec_bWFzb24tY2FyZC1wcm92aWRlci10ZXN0LXNlY3JldA=='
const testToken = env.CARD_PROVIDER_TEST_TOKEN

const settings: Settings = {
  ...{ failures: [], random: null, late_ms: 500, window_ms: 24 * 3_600_000, clock_ms: 0 },
  webhooks: { url: null, delays_ms: [0], copies: 1 },
  ...(JSON.parse(values.settings) as Partial<Settings>),
}
const books = openBooks(values.books)
const notify = createWebhooks(() => settings.webhooks, webhookSecret)
const attempts = new Map<string, number>()
const now = (): number => Date.now() + settings.clock_ms

const hash = (...parts: string[]): Buffer => createHash('sha256').update(parts.join('\n')).digest()
const hasToken = ({ headers }: IncomingMessage, token: string | undefined): boolean =>
  token !== undefined && timingSafeEqual(hash(headers.authorization ?? ''), hash(`Bearer ${token}`))

const pickFailure = (key: string, isNew: boolean): Failure => {
  const next = settings.failures.shift()
  const { seed = '', share = 0, kinds = [], stuck = 0 } = settings.random ?? {}
  const nth = (attempts.get(key) ?? 0) + 1
  attempts.set(key, nth)
  if (next) return next
  const ofKey = hash(seed, key)
  if (isNew && ofKey.readUInt32BE(0) / 2 ** 32 < stuck)
    return ofKey.readUInt8(4) % 2 ? 'fail_before' : 'fail_after'
  const drawn = hash(seed, key, String(nth))
  if (drawn.readUInt32BE(0) / 2 ** 32 >= share) return 'none'
  return kinds[drawn.readUInt32BE(4) % kinds.length] ?? 'none'
}

const sendJson = (response: ServerResponse, status: number, body: unknown): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
const sendError = (response: ServerResponse, status: number, code: string, payment?: string): void => {
  // only these promise that nothing was done under this key
  const refused = [400, 402, 404, 422].includes(status) && { acted: false }
  sendJson(response, status, { error: { code, payment, ...refused } })
}
const toView = ({ hash: _, ...operation }: Operation) => operation

const finishLater = ({ key, status }: Operation): void => {
  if (status === 'pending') setTimeout(() => finishPending(books, key).forEach(notify), settings.late_ms)
}

/** The operation under this key: as it is where the key is known within its window, else performed now. */
const performOnce = (url: URL, key: string, text: string): Operation => {
  const [, , , payment = null, kind = 'authorize'] = url.pathname.split('/')
  const requestHash = hash(url.pathname, text).toString('hex')
  const known = books.operations.get(key)
  if (known && now() - known.at < settings.window_ms) {
    if (known.hash !== requestHash) throw new RefusalError(409, 'idempotency_conflict')
    return known
  }
  const body = Object(JSON.parse(text)) as Partial<PaymentRequest>
  const changed = perform(books, { key, hash: requestHash, kind, payment, at: now(), body })
  for (const operation of changed) notify(operation)
  const [own] = changed as [Operation]
  finishLater(own)
  return own
}

const handlePayment = async (url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const key = request.headers['idempotency-key']
  const text = await readText(request)
  if (typeof key !== 'string' || key === '') throw new RefusalError(400, 'invalid_request')
  const failure = pickFailure(key, url.pathname === '/v1/payments')
  if (failure === 'late') {
    const act = async () => performOnce(url, key, text)
    setTimeout(() => void act().catch(() => {}), settings.late_ms)
  }
  if (failure === 'conflict') throw new RefusalError(409, 'idempotency_conflict')
  const operation = /before|late/.test(failure) ? null : performOnce(url, key, text)
  if (failure.startsWith('hang')) return
  if (failure.startsWith('cut') || failure === 'late') return void response.destroy()
  if (operation === null || failure === 'fail_after') throw new Error('something broke')
  if (operation.status === 'declined') {
    const status = operation.kind === 'authorize' || operation.kind === 'challenge' ? 402 : 422
    return sendError(response, status, operation.code ?? 'card_declined', operation.payment)
  }
  sendJson(response, 200, {
    ...toView(operation),
    ...(failure === 'nonsense' && { amount: operation.amount + 1 }),
  })
}

const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const url = new URL(request.url ?? '/', 'http://provider')
  const route = `${request.method} ${url.pathname}`
  if (url.pathname.startsWith('/test/') && testToken !== undefined) {
    if (!hasToken(request, testToken)) throw new RefusalError(401, 'unauthorized')
    if (route === 'GET /test/books')
      return sendJson(response, 200, { payments: [...books.payments.values()] })
    if (route !== 'PATCH /test/settings') throw new RefusalError(404, 'unknown_route')
    return sendJson(response, 200, Object.assign(settings, JSON.parse(await readText(request))))
  }
  if (!hasToken(request, apiKey)) throw new RefusalError(401, 'unauthorized')
  if (request.method === 'POST' && /^\/v1\/payments(\/[^/]+\/[a-z]+)?$/.test(url.pathname))
    return handlePayment(url, request, response)
  const key = /^GET \/v1\/operations\/([^/]+)$/.exec(route)?.[1]
  if (key === undefined) throw new RefusalError(404, 'unknown_route')
  const operation = books.operations.get(decodeURIComponent(key))
  if (!operation) throw new RefusalError(404, 'unknown_key')
  sendJson(response, 200, toView(operation))
}

for (const operation of books.operations.values()) finishLater(operation)

const server = createServer((request, response) => {
  handle(request, response).catch((error: unknown) => {
    if (error instanceof RefusalError) sendError(response, error.status, error.code)
    else sendError(response, error instanceof SyntaxError ? 400 : 500, String(error))
  })
})
server.listen(Number(values.port), '127.0.0.1', () =>
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`),
)
