import { refuseWebhookAddress } from '../../engine/runs/webhook-address.ts'
import { databaseRef, masterKeysRef, webhookAddressRef } from '../core.ref.ts'
import { defineService, optional } from '../definitions.ts'
import { agentPushesRef } from './a2a.ref.ts'
import { createAgentPushes } from './server/agent-pushes.ts'

export default defineService({
  provides: agentPushesRef,
  needs: { database: databaseRef, masterKeys: masterKeysRef, checkAddress: optional(webhookAddressRef) },
  start: ({ database, masterKeys, checkAddress }) =>
    createAgentPushes(database, masterKeys, checkAddress ?? refuseWebhookAddress),
})
