import { soak } from '../soak/soak.ts'
import type { Suite } from '../suite.ts'

const sliceOfAnHour = 0.0125

const suite: Suite = {
  about: 'a worker that forgets to let go of 64 KB with every run: the soak must find it out',
  async run(options) {
    const found = await soak({ ...options, scale: sliceOfAnHour }, { leakBytes: 65_536 })
    const isFound = found.failures.some((failure) => failure.startsWith('worker_heap_mb grows by'))
    const others = found.failures.filter((failure) => !failure.startsWith('worker_'))
    return { figures: found.figures, failures: isFound ? others : ['the leak was not found', ...others] }
  },
}

export default suite
