import { secretsChangedRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { remoteAgentsRef } from './a2a.ref.ts'

export default defineService({
  provides: secretsChangedRef,
  needs: { agents: remoteAgentsRef },
  start: ({ agents }) => agents.reseal,
})
