import {
  databaseRef,
  egressRef,
  masterKeysRef,
  registryRef,
  scrubberRef,
  sealForExecutorRef,
} from '../core.ref.ts'
import { defineService, optional } from '../definitions.ts'
import { remoteAgentsRef } from './a2a.ref.ts'
import { createRemoteAgents } from './client/remote-agents.ts'
import { createCardReader, createHeaderSealer } from './client/run-agents.ts'

export default defineService({
  provides: remoteAgentsRef,
  needs: {
    database: databaseRef,
    egress: egressRef,
    masterKeys: masterKeysRef,
    scrubber: scrubberRef,
    seal: optional(sealForExecutorRef),
    registry: registryRef,
  },
  start({ database, egress, masterKeys, scrubber, seal, registry }) {
    const secrets = { masterKeys, scrubber }
    // without an executor, and before its first start, an agent is for calls alone until an admin changes it
    const sealHeaders = createHeaderSealer(secrets, database, seal ?? (async () => null))
    return createRemoteAgents(database, createCardReader(secrets, egress, database), sealHeaders, () =>
      registry.refresh(),
    )
  },
})
