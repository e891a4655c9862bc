import { createFieldsError } from '../../state/resource-schema.ts'
import { type CheckWebhookAddress, databaseRef, masterKeysRef, webhookAddressRef } from '../core.ref.ts'
import { defineService, optional } from '../definitions.ts'
import { agentPushesRef } from './a2a.ref.ts'
import { createAgentPushes } from './server/agent-pushes.ts'

const refuseAddress: CheckWebhookAddress = async (_, __, field) => {
  throw createFieldsError({ pointer: `/${field}`, detail: 'this server sends no webhooks; omit it' })
}

export default defineService({
  provides: agentPushesRef,
  needs: { database: databaseRef, masterKeys: masterKeysRef, checkAddress: optional(webhookAddressRef) },
  start: ({ database, masterKeys, checkAddress }) =>
    createAgentPushes(database, masterKeys, checkAddress ?? refuseAddress),
})
