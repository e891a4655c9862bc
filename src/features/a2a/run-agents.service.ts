import {
  egressRef,
  masterKeysRef,
  registryRef,
  runAgentsRef,
  scrubberRef,
  serverAddressRef,
} from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { createRunAgents } from './client/run-agents.ts'

export default defineService({
  provides: runAgentsRef,
  needs: {
    egress: egressRef,
    masterKeys: masterKeysRef,
    scrubber: scrubberRef,
    address: serverAddressRef,
    registry: registryRef,
  },
  start:
    ({ address: { publicUrl }, ...options }) =>
    (sql, businessId) =>
      createRunAgents({ ...options, publicUrl }, sql, businessId),
})
