import { runCommand } from '../src/cli/command-runner.ts'
import { runWorker } from '../src/cli/serve.ts'

/** One worker process, as `mason worker`: wake-ups, intake, relay and reconciler start inside the worker of the runtime. */
await runCommand((env, scrubber) => runWorker({}, env(), scrubber))
