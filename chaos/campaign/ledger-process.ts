import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type LedgerEntry, lookupResult, type Order, type Reply, replyTo } from './ledger.ts'

/**
 * The provider of the campaign, in a process of its own: does what it is asked for and writes that down, on the disk
 * before any answer. `keyed` orders under a known key are not done again; `queryable` ones can be looked up; it answers
 * in ambiguous ways, as its seed says. Arguments: the file, the seed.
 */
const [, , file = '', seed = ''] = process.argv
const journal = openSync(file, 'a')
const done = new Map<string, string>()
const asked = new Map<string, number>()
const lateMs = 3000

const act = (order: Order): { reply: Reply; said: string } => {
  const nth = (asked.get(order.item) ?? 0) + 1
  asked.set(order.item, nth)
  const reply = replyTo(seed, order.item, nth)
  const known = done.get(order.key)
  const acts = reply !== 'lost' && !(order.class === 'keyed' && known !== undefined)
  const said = (order.class === 'keyed' && known) || `did ${order.item}`
  const deed: LedgerEntry = { ...order, at: Date.now(), nth, reply, acted: acts }
  writeSync(journal, `${JSON.stringify(deed)}\n`)
  if (acts) {
    fsyncSync(journal)
    done.set(order.key, said)
  }
  return { reply, said }
}

const answer = (response: ServerResponse, reply: Reply, said: string): void => {
  if (reply === 'ok') response.end(said)
  else if (reply === 'broken') response.writeHead(500).end('something broke after the work')
  else if (reply === 'late') setTimeout(() => response.end(said), lateMs)
  else response.destroy()
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url ?? '/', 'http://ledger')
  const key = url.searchParams.get('key') ?? ''
  if (url.pathname === '/look') {
    response.end(lookupResult(url.searchParams.get('item') ?? '', url.searchParams.get('how') === 'big'))
  } else if (url.pathname === '/deeds') {
    response.end(done.get(key) ?? '')
  } else {
    const { reply, said } = act(JSON.parse(await text(request)) as Order)
    answer(response, reply, said)
  }
})
server.listen(0, '127.0.0.1', () =>
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`),
)
process.once('SIGTERM', () => {
  closeSync(journal)
  process.exit(0)
})
