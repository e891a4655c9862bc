import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'
import { openJournal } from '../journal.ts'
import type { Charge, Company, Order } from './company.ts'

/** A key of Mason: what it asked for, and what became of it, once that is known. */
type Entry = { key: string; at: number; hash: string; order: Order; charge?: Charge }
type Options = { apiKey: string; file: string; company: Company; port?: number; now?: () => number }

/** An answer that is no operation. 400, 402, 404 and 422 promise that nothing was done. */
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

  /** Asks the company what became of a key, in its window by the same request; afterwards only a person can know. */
  const settle = async (entry: Entry): Promise<Entry & { charge: Charge }> => {
    const { key, at, order, charge: known } = entry
    if (known && known.status !== 'pending') return { ...entry, charge: known }
    if (!known && now() - at > company.windowMs * 0.8)
      throw new Error(`the company may no longer know ${key}: look it up by hand`)
    const charge = known ? await company.read(known.ref) : await company.charge(key, order)
    const settled = { ...entry, charge }
    write(settled)
    return settled
  }
  const toOperation = ({ key, order: { amount, currency }, charge }: Entry & { charge: Charge }) => ({
    ...{ key, kind: 'authorize', payment: charge.ref, status: charge.status, amount, currency },
    ...{ network_ref: null, code: 'code' in charge ? charge.code : null, challenge: null },
  })

  const charge = async (key: string, text: string) => {
    const hash = createHash('sha256').update(text).digest('hex')
    const known = entries.get(key)
    if (known && known.hash !== hash) throw new RefusalError(409, 'idempotency_conflict')
    const entry = known ?? { key, at: now(), hash, order: toOrder(text) }
    if (!known) write(entry)
    const settled = await settle(entry)
    if (settled.charge.status === 'declined') throw new RefusalError(402, settled.charge.code)
    return toOperation(settled)
  }
  const answer = async (request: IncomingMessage): Promise<object> => {
    const { method, url = '/', headers } = request
    if (headers.authorization !== `Bearer ${apiKey}`) throw new RefusalError(401, 'unauthorized')
    const key = headers['idempotency-key']
    if (method === 'POST' && url === '/v1/payments' && typeof key === 'string')
      return charge(key, await readText(request))
    if (method === 'POST') throw new RefusalError(422, 'not_supported')
    const entry = entries.get(decodeURIComponent(url.replace('/v1/operations/', '')))
    if (!entry) throw new RefusalError(404, 'unknown_key')
    return toOperation(await settle(entry))
  }

  const server = createServer(async (request, response) => {
    const [status, body] = await answer(request).then(
      (done) => [200, done] as const,
      (error: Error) => {
        const refused = error instanceof RefusalError ? error.status : 503
        const acted = [400, 402, 404, 422].includes(refused) ? { acted: false } : {}
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
