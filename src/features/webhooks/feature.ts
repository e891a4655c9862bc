import { defineFeature } from '../definitions.ts'

export default defineFeature({
  id: 'webhooks',
  tables: ['webhook_deliveries', 'webhook_secrets', 'webhook_settings'],
})
