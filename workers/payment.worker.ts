import { runCommand } from '../src/app/cli/command-runner.ts'
import { runProcess } from '../src/app/cli/features/run-process.ts'

/** One executor of payments, as `mason payments`. It loads no tools of a product: they would run beside its key. */
await runCommand((env, scrubber) => runProcess('payments', env(), scrubber))
