import { modelProbesRef, modelRequestsRef, scrubberRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { createModelAdmin } from './model-probe.ts'

export default defineService({
  provides: modelProbesRef,
  needs: { requests: modelRequestsRef, scrubber: scrubberRef },
  start: ({ requests, scrubber }) => createModelAdmin({ ...requests, scrubber }),
})
