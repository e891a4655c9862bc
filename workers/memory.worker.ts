import { runCommand } from '../src/cli/command-runner.ts'
import { runMemoryWorker } from '../src/cli/serve.ts'
import { loadProject } from '../src/project/load-project.ts'

/** A process that only learns from ended runs and embeds memories; run workers also do so. */
await runCommand(async (env, scrubber) => {
  const { environment, setup } = await loadProject(env())
  return runMemoryWorker(environment, scrubber, setup)
})
