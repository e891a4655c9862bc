import { z } from 'zod'
import { readCallInput } from '../../../src/graph/call-drafts.ts'
import { defineTool } from '../../../src/graph/definitions.ts'

const input = z.strictObject({ way: z.enum(['killed', 'blocked', 'out of memory']) })

/** Takes its worker down: by a signal, by blocking its event loop for ever, or by eating all memory. */
export default defineTool({
  name: 'deadly',
  description: 'Takes its worker down',
  kinds: ['call'],
  pure: true,
  input,
  reads: [],
  writes: [],
  async run(_state, context) {
    const { way } = input.parse(readCallInput(context))
    if (way === 'killed') process.kill(process.pid, 'SIGKILL')
    if (way === 'blocked') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    const hoard: number[][] = []
    while (way === 'out of memory') hoard.push(new Array<number>(100_000).fill(hoard.length))
    return new Promise(() => {})
  },
})
