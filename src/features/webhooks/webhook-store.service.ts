import { databaseRef, masterKeysRef, scrubberRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { createWebhookDeliveries } from './webhook-deliveries.ts'
import { createWebhookSettings } from './webhook-settings.ts'
import { webhooksRef } from './webhooks.ref.ts'

export default defineService({
  provides: webhooksRef,
  needs: { database: databaseRef, masterKeys: masterKeysRef, scrubber: scrubberRef },
  start: ({ database, masterKeys, scrubber }) => ({
    ...createWebhookDeliveries(database, scrubber),
    settings: createWebhookSettings(database, masterKeys, scrubber),
  }),
})
