import { fuzzHttp } from '../fuzz/http.ts'
import { startMason } from '../fuzz/mason.ts'
import { fuzzQueue } from '../fuzz/queue.ts'
import type { Suite } from '../suite.ts'

/** One fault tends to show many times. */
const shortened = (failures: string[]): string[] =>
  failures.length <= 20 ? failures : [...failures.slice(0, 20), `and ${failures.length - 20} more`]

const suite: Suite = {
  about:
    'malformed HTTP requests to every route, and malformed queue jobs: no 5xx, no crash, none lost in silence',
  async run({ seed, scale, say, signal }) {
    const mason = await startMason()
    const count = Math.max(1, Math.round(10_000 * scale))
    const crashed = new AbortController()
    void mason.ended.then((end) =>
      crashed.abort(new Error(`mason serve is gone: ${JSON.stringify(end).slice(-3000)}`)),
    )
    const options = { mason, seed, count, say, signal: AbortSignal.any([signal, crashed.signal]) }
    try {
      const http = await fuzzHttp(options)
      const queue = await fuzzQueue(options)
      return {
        figures: { ...http.figures, ...queue.figures },
        failures: [...shortened(http.failures), ...shortened(queue.failures)],
      }
    } finally {
      await mason.stop()
    }
  },
}
export default suite
