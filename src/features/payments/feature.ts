import { defineFeature } from '../definitions.ts'

export default defineFeature({
  id: 'payments',
  tables: [
    'consent_links',
    'consents',
    'mandate_spend',
    'mandates',
    'open_mandates',
    'passkeys',
    'payment_events',
    'payment_inbox',
    'payment_keys',
    'payment_nonces',
    'payment_operations',
    'payment_orders',
    'payment_providers',
    'payments',
    'trusted_keys',
  ],
})
