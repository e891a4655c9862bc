import { runCommand } from '../src/app/cli/command-runner.ts'
import { runWorker } from '../src/app/cli/serve.ts'
import { loadProject } from '../src/project/load-project.ts'

/** One worker process, as `mason worker`: wake-ups, intake, relay and reconciler start inside the worker of the runtime. */
await runCommand(async (env, scrubber) => {
  const { environment, setup } = await loadProject(env())
  return runWorker({}, environment, scrubber, setup)
})
