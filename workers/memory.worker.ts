import { learn } from '../src/cli/memory-worker.ts'
import { runCommand } from '../src/cli/shell.ts'

/** One process that only learns from ended runs and embeds memories; run workers do so too, beside their runs. */
await runCommand((env, scrubber) => learn(env(), scrubber))
