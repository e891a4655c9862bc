// biome-ignore-all lint/performance/noBarrelFile: this file is what `mason-runtime/testing` exports
import { randomBytes } from 'node:crypto'
import type { Runtime } from '../app/api.ts'
import { openRuntime } from '../app/open-runtime.ts'
import { readConfig } from '../app/read-config.ts'
import type { RuntimeOptions } from '../app/runtime-options.ts'
import { loadProject } from '../project/load-project.ts'
import type { RunRequest } from '../state/run-request.ts'
import type { RunView } from '../state/run-view.ts'
import { checkInvariants } from './invariants.ts'

export { checkInvariants } from './invariants.ts'
export { type Script, type ScriptedReply, scriptedModel } from './scripted-model.ts'

/** A runtime with a worker for tests; see `openTestRuntime`. */
export type TestRuntime = Runtime & {
  /** Submits a run and waits until it ends or asks. Fails where its state breaks an invariant. */
  complete(request: Partial<RunRequest> & { prompt: string }): Promise<RunView>
  /** Answers the question of a run, and waits as `complete` does. */
  answer(
    run: RunView,
    answer: NonNullable<Parameters<ReturnType<Runtime['of']>['answer']>[2]>,
  ): Promise<RunView>
}

const waitMs = 60_000

/**
 * Opens a runtime in memory with the tools of `mason.config.ts` in `folder` (the current one). Of the settings only those of
 * the config count. Learning from runs is off. Close it after the tests.
 *
 * @example
 * ```ts
 * import { openTestRuntime, scriptedModel } from 'mason-runtime/testing'
 *
 * const runtime = await openTestRuntime({ models: scriptedModel({ planner: ['Hello.'] }) })
 * const run = await runtime.complete({ prompt: 'Say hello' })
 * console.log(run.answer)
 * await runtime.close()
 * ```
 */
export const openTestRuntime = async ({
  folder = process.cwd(),
  ...options
}: RuntimeOptions & { folder?: string } = {}): Promise<TestRuntime> => {
  const { environment, setup } = await loadProject({}, folder)
  const settings = { ...environment, MASON_MASTER_KEY: randomBytes(32).toString('base64') }
  const config = { ...readConfig(settings, { role: 'run' }), redisUrl: null, openai: null }
  const runtime = await openRuntime(
    { ...config, database: { kind: 'memory' } },
    { memory: 'off', ...(setup && { setup }), ...options },
  )
  await runtime.startWorker()
  const api = runtime.of('default')
  const wait = async (runId: string): Promise<RunView> => {
    const view = await api.wait(runId, AbortSignal.timeout(waitMs))
    const state = await api.state(runId, false)
    if (state) checkInvariants(state, { ended: view.status !== 'input_required' })
    return view
  }
  return {
    ...runtime,
    async complete(request) {
      const { run } = await api.submit({ user_id: 'test', ...request })
      return wait(run.id)
    },
    async answer({ id, input_request }, answer) {
      if (!input_request) throw new Error(`the run ${id} asks nothing`)
      await api.answer(id, input_request.id, answer)
      return wait(id)
    },
  }
}
