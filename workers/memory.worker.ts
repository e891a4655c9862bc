import { runCommand } from '../src/app/cli/command-runner.ts'
import { runMemoryWorker } from '../src/app/cli/serve.ts'
import { loadProject } from '../src/project/load-project.ts'

/** As `mason memory-worker`. */
await runCommand(async (env, scrubber) => {
  const { environment, setup } = await loadProject(env())
  return runMemoryWorker(environment, scrubber, setup)
})
