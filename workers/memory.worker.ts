import { runCommand } from '../src/cli/command-runner.ts'
import { runMemoryWorker } from '../src/cli/worker.ts'

/** A process that only learns from ended runs and embeds memories; run workers also do so. */
await runCommand((env, scrubber) => runMemoryWorker(env(), scrubber))
