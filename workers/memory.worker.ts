import { runCommand } from '../src/cli/command-runner.ts'
import { runMemoryWorker } from '../src/cli/serve.ts'

/** A process that only learns from ended runs and embeds memories; run workers also do so. */
await runCommand((env, scrubber) => runMemoryWorker(env(), scrubber))
