import { defineLoop } from '../definitions.ts'
import { bulkRef } from './bulk.ref.ts'

export default defineLoop({
  name: 'working on lists of runs',
  everyMs: 1000,
  needs: { bulk: bulkRef },
  run: ({ bulk }) => bulk.work.run(),
  drain({ bulk }, lastRun) {
    bulk.work.stop()
    return lastRun
  },
})
