import { masterKeysRef, renderPushRef, scrubberRef, workerDatabaseRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { createPushRenderer } from './server/agent-pushes.ts'

export default defineService({
  provides: renderPushRef,
  needs: { database: workerDatabaseRef, masterKeys: masterKeysRef, scrubber: scrubberRef },
  start: createPushRenderer,
})
