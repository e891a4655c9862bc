import { z } from 'zod'
import { defineTool } from '../../../src/graph/definitions.ts'

/** Kills the process it runs in, as a tool that eats all memory would. */
export default defineTool({
  name: 'gate_kill',
  description: 'Kills its worker',
  kinds: ['call'],
  pure: true,
  input: z.strictObject({}),
  reads: [],
  writes: [],
  async run() {
    process.kill(process.pid, 'SIGKILL')
    return new Promise(() => {})
  },
})
