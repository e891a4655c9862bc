import { runCommand } from '../src/app/cli/command-runner.ts'
import { runExecutor } from '../src/app/cli/payments/executor.ts'

/** One executor of payments, as `mason payments`. It loads no tools of a product: they would run beside its key. */
await runCommand((env, scrubber) => runExecutor(env(), scrubber))
