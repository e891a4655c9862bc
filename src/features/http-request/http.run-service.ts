import { egressRef, masterKeysRef, registryRef, scrubberRef } from '../core.ref.ts'
import { defineRunService } from '../definitions.ts'
import { createHttpAccess } from './http-access.ts'

/** The hosts that the business of a run may call. */
export default defineRunService({
  name: 'http',
  needs: { egress: egressRef, masterKeys: masterKeysRef, scrubber: scrubberRef, registry: registryRef },
  open: (outside, { tenant }, sql) => createHttpAccess(outside, sql, tenant),
})
