import { subscribe, unsubscribe } from 'node:diagnostics_channel'

/**
 * How long the programs of others were at work: this process answers requests as agents and as the model, and acts as the person.
 * Their times may overlap, and each moment counts once.
 */
export const watchOthers = () => {
  let [working, since, ms] = [0, 0, 0]
  const begin = (): void => {
    if (working++ === 0) since = performance.now()
  }
  const end = (): void => {
    if (--working === 0) ms += performance.now() - since
  }
  subscribe('http.server.request.start', begin)
  subscribe('http.server.response.finish', end)
  return {
    /** What a person does between two requests. */
    async act<Value>(work: () => Promise<Value>): Promise<Value> {
      begin()
      try {
        return await work()
      } finally {
        end()
      }
    },
    /** Milliseconds so far. */
    read: (): number => ms,
    stop(): void {
      unsubscribe('http.server.request.start', begin)
      unsubscribe('http.server.response.finish', end)
    },
  }
}
