import { runCommand } from '../src/cli/shell.ts'
import { work } from '../src/cli/worker.ts'

/** One worker process, as `mason worker`: bells, intake, relay and reconciler all start inside the runtime's worker. */
await runCommand((env, scrubber) => work(env(), scrubber))
