import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** `pid` is the worker's; `effect` the idempotency key of a knock that changes something. */
type Knock = { tool: string; key: string; run: string; pid: number; effect?: string }
/** `hold` waits for a release; a text is the tool's result, an error is what it throws. */
type Passage = { hold?: boolean; text?: string; error?: string }

/** Where gate tools knock: holds them or lets them through, and keeps its own ledger of who came. */
export type GateServer = AsyncDisposable & {
  url: string
  /** Every knock so far, in order: what the world outside saw. */
  knocks: Knock[]
  /** Sets what happens to knocks from now on; `nth` counts those with this key, from 1. */
  onKnock(decide: (knock: Knock, nth: number) => Passage): void
  /** Resolves with the knocks once this many came. */
  knocked(count: number, signal?: AbortSignal): Promise<Knock[]>
  /** Keys that wait. */
  held(): string[]
  /** Resolves once exactly these keys wait, those of clients that went away not counted. */
  waitsFor(keys: readonly string[], signal?: AbortSignal): Promise<void>
  /** Lets through what waits, all or those with this key. */
  release(key?: string): void
  reset(): void
  close(): Promise<void>
}

export const startGate = async (): Promise<GateServer> => {
  const knocks: Knock[] = []
  const waiting = new Map<ServerResponse, string>()
  const news = new EventEmitter().setMaxListeners(0)
  let decide: (knock: Knock, nth: number) => Passage = () => ({})

  const reply = (response: ServerResponse, { text: said, error }: Passage): void =>
    void response.end(JSON.stringify(error === undefined ? { text: said ?? 'ok' } : { error }))
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const knock = JSON.parse(await text(request)) as Knock
    knocks.push(knock)
    const passage = decide(knock, knocks.filter(({ key }) => key === knock.key).length)
    // who has left by now waits for nothing
    if (!passage.hold || response.closed) reply(response, passage)
    else {
      waiting.set(response, knock.key)
      response.once('close', () => {
        waiting.delete(response)
        news.emit('change')
      })
    }
    news.emit('change')
  }
  // one that is gone before it has said what it wants has not knocked
  const server = createServer((request, response) => void take(request, response).catch(() => {}))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const until = async (isTrue: () => boolean, signal = AbortSignal.timeout(120_000)): Promise<void> => {
    while (!isTrue()) await once(news, 'change', { signal })
  }
  const held = (): string[] => [...waiting.values()].sort()
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise<void>((resolve) => void server.close(() => resolve()))
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    knocks,
    onKnock: (next) => {
      decide = next
    },
    async knocked(count, signal) {
      await until(() => knocks.length >= count, signal)
      return knocks
    },
    held,
    waitsFor: (keys, signal) => until(() => held().join() === keys.toSorted().join(), signal),
    release(key) {
      for (const [response, waits] of waiting)
        if (key === undefined || waits === key) {
          waiting.delete(response)
          reply(response, {})
        }
    },
    reset() {
      knocks.length = 0
      decide = () => ({})
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
