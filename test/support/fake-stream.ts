import type { RunEvent } from '../../src/state/run-view.ts'

/** A stream of events as the test feeds it. `taken` counts what the server asked for. */
export type FakeStream = {
  source: { run_id: string } | { session_id: string }
  after: number
  signal: AbortSignal
  taken: number
  over: boolean
  push(...events: RunEvent[]): void
  end(): void
  fail(error: Error): void
}

export const createStream = (source: FakeStream['source'], after: number, signal: AbortSignal) => {
  const queue: (RunEvent | Error | null)[] = []
  let wake = (): void => undefined
  const put = (...items: (RunEvent | Error | null)[]) => {
    queue.push(...items)
    wake()
  }
  const stream: FakeStream = {
    source,
    after,
    signal,
    taken: 0,
    over: false,
    push: put,
    end: () => put(null),
    fail: put,
  }
  signal.addEventListener('abort', () => wake(), { once: true })

  async function* events(): AsyncGenerator<RunEvent> {
    try {
      while (!signal.aborted) {
        const item = queue.shift()
        if (item === null) return
        if (item instanceof Error) throw item
        if (item) {
          stream.taken++
          yield item
        } else {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
      }
    } finally {
      stream.over = true
    }
  }
  return { stream, events: events() }
}
