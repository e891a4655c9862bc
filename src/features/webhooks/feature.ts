import { defineFeature } from '../definitions.ts'

export default defineFeature({
  id: 'webhooks',
  tables: ['webhook_deliveries', 'webhook_secrets', 'webhook_settings'],
  sealed: [
    {
      name: 'webhook_secrets',
      id: 'secret_id',
      owner: "'' AS vendor_id, tenant AS business_id",
      purpose: 'webhook',
    },
  ],
})
