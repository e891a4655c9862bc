import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Milliseconds by what ended them. */
type Waits = Record<string, number>

/**
 * How long the programs of others were at work: this process answers requests as agents and as the model, and acts as the person.
 * Their times may overlap, and each moment counts once. The rest is split by which of them came next: `names` has the servers by their
 * addresses.
 */
export const watchOthers = (names: Readonly<Record<string, string>>) => {
  const byPort = new Map(Object.entries(names).map(([url, name]) => [Number(new URL(url).port), name]))
  let [working, since, ms] = [0, 0, 0]
  let [waitingSince, waits] = [performance.now(), {} as Waits]
  const endWait = (name: string): void => {
    const now = performance.now()
    waits[name] = (waits[name] ?? 0) + now - waitingSince
    waitingSince = now
  }
  const begin = (name: string): void => {
    if (working++ > 0) return
    endWait(name)
    since = waitingSince
  }
  const end = (): void => {
    if (--working > 0) return
    waitingSince = performance.now()
    ms += waitingSince - since
  }
  const onRequest = (message: unknown): void => {
    const { port } = (message as { server: Server }).server.address() as AddressInfo
    begin(byPort.get(port) ?? 'another')
  }
  subscribe('http.server.request.start', onRequest)
  subscribe('http.server.response.finish', end)
  return {
    /** What a person does between two requests. */
    async act<Value>(work: () => Promise<Value>): Promise<Value> {
      begin('the signature')
      try {
        return await work()
      } finally {
        end()
      }
    },
    /** Something that others were waiting for has come. */
    mark(name: string): void {
      if (working === 0) endWait(name)
    },
    /** Milliseconds so far. */
    read: (): number => ms,
    /** Milliseconds of none at work since the last call, by what they ended with. */
    readWaits(): Waits {
      const found = waits
      waits = {}
      return found
    },
    stop(): void {
      unsubscribe('http.server.request.start', onRequest)
      unsubscribe('http.server.response.finish', end)
    },
  }
}
