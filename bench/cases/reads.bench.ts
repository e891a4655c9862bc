import { fileURLToPath } from 'node:url'
import { openRuntime } from '../../src/app/open-runtime.ts'
import { noOpModels } from '../../test/support/no-op-models.ts'
import type { Case, Variant } from '../case.ts'
import { median } from '../support/statistics.ts'

/** From the submission of a run to its end. */
const callInOneReply =
  (calls: number): Variant =>
  async (place) => {
    const toCalls = () =>
      Array.from({ length: calls }, (_, n) => ({ name: 'half_second', arguments: JSON.stringify({ n }) }))
    const toolFolders = [fileURLToPath(new URL('../support/tools', import.meta.url))]
    const runtime = await openRuntime(place.config, { models: noOpModels({ toCalls }), toolFolders })
    await runtime.startWorker()
    const api = runtime.of('shop')
    const seconds: number[] = []
    // the first two are slower: the code is not compiled yet
    for (let n = -2; n < place.count(20); n++) {
      const since = performance.now()
      const { run } = await api.submit({ prompt: 'read', user_id: 'u1' })
      const { status, error } = await api.wait(run.id, AbortSignal.timeout(30_000))
      if (status !== 'completed') throw new Error(`a run was ${status}: ${JSON.stringify(error)}`)
      if (n >= 0) seconds.push((performance.now() - since) / 1000)
    }
    await runtime.close()
    return { 'seconds p50': median(seconds), 'seconds at most': Math.max(...seconds) }
  }

const readsCase: Case = {
  about: 'whole runs whose model takes no time and asks for reads of 500 ms in one reply, on Postgres',
  ours: { 'one read': callInOneReply(1), 'four reads': callInOneReply(4) },
}

export default readsCase
