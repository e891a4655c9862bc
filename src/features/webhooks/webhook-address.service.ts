import { databaseRef, webhookAddressRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { checkWebhookAddress } from './webhook-settings.ts'

export default defineService({
  provides: webhookAddressRef,
  needs: { database: databaseRef },
  start:
    ({ database }) =>
    (businessId, url, field) =>
      checkWebhookAddress(database, businessId, url, field),
})
