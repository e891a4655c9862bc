import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'
import { openJournal } from '../journal.ts'
import type { Charge, Company, Order } from './company.ts'

/** A key of Mason: the hash of its request, whose credential is nowhere else, and what became of it, once that is known. */
type Entry = { key: string; at: number; hash: string; charge?: Charge }
type Options = { apiKey: string; file: string; company: Company; port?: number; now?: () => number }

/** An answer that is no operation. 402 and 422 promise that nothing was done. */
class RefusalError extends Error {
  readonly status: number
  constructor(status: number, code: string) {
    super(code)
    this.status = status
  }
}

const toOrder = (text: string): Order => {
  const { kind, payment_id, amount, currency, credential, capture } = JSON.parse(text)
  if (kind !== 'authorize' || capture !== true) throw new RefusalError(422, 'not_supported')
  return { payment_id, amount, currency, credential }
}

/**
 * Stands between Mason's card provider and a payment company, with the routes of examples/card-provider/README.md that a charge needs.
 * A key is on the disk before the company hears of it, and goes to the company under the same name: so both look-ups and retries find it.
 */
export const startAdapter = async ({ apiKey, file, company, port = 0, now = Date.now }: Options) => {
  const entries = new Map<string, Entry>()
  const write = openJournal<Entry>(file, (entry) => void entries.set(entry.key, entry))

  /** What became of a key. Without `ask`, which moves money, it only reads. */
  const settle = async (entry: Entry, ask?: () => Promise<Charge>): Promise<Charge> => {
    const { key, charge: known } = entry
    if (known && known.status !== 'pending') return known
    const charge = await (known ? company.read(known.ref) : ask?.())
    if (!charge) throw new Error(`it is not known what the company did for ${key}: look it up by hand`)
    write({ ...entry, charge })
    return charge
  }
  const toOperation = (key: string, { ref: payment, ...charge }: Charge) => ({
    key,
    kind: 'authorize',
    payment,
    ...charge,
  })

  const charge = async (key: string, text: string) => {
    const hash = createHash('sha256').update(text).digest('hex')
    const known = entries.get(key)
    if (known && known.hash !== hash) throw new RefusalError(409, 'idempotency_conflict')
    const order = toOrder(text)
    const entry = known ?? { key, at: now(), hash }
    if (!known) write(entry)
    const isForgotten = now() - entry.at > company.windowMs * 0.8
    const charged = await settle(entry, isForgotten ? undefined : () => company.charge(key, order))
    if (charged.status === 'declined') throw new RefusalError(402, charged.code)
    return toOperation(key, charged)
  }
  const answer = async (request: IncomingMessage): Promise<object> => {
    const { method, url = '/', headers } = request
    if (headers.authorization !== `Bearer ${apiKey}`) throw new RefusalError(401, 'unauthorized')
    const key = headers['idempotency-key']
    const [, asked] = (method === 'GET' && /^\/v1\/operations\/([^/?]+)$/.exec(url)) || []
    if (method === 'POST' && url === '/v1/payments' && typeof key === 'string')
      return charge(key, await readText(request))
    if (method === 'POST' && url.startsWith('/v1/payments/')) throw new RefusalError(422, 'not_supported')
    if (!asked) throw new RefusalError(404, 'unknown_route')
    const entry = entries.get(decodeURIComponent(asked))
    if (!entry) throw new RefusalError(404, 'unknown_key')
    return toOperation(entry.key, await settle(entry))
  }

  const server = createServer(async (request, response) => {
    const [status, body] = await answer(request).then(
      (done) => [200, done] as const,
      (error: Error) => {
        const refused = error instanceof RefusalError ? error.status : 503
        const acted = [402, 422].includes(refused) ? { acted: false } : {}
        return [refused, { error: { code: error.message, ...acted } }] as const
      },
    )
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
