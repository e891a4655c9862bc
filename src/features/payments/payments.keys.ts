import { defineKeys } from '../keys-definition.ts'
import { openPaymentMasterKeys, paymentKeyFiles } from './keys/executor-master-keys.ts'

export default defineKeys({
  option: 'payments',
  description: "the executor's private keys under a new payment key instead",
  name: 'payment',
  owner: 'the executor',
  role: 'payments',
  processes: 'every executor',
  settings: { current: 'MASON_PAYMENT_KEY', previous: 'MASON_PREVIOUS_PAYMENT_KEYS' },
  readSettings: ({ paymentKey, previousPaymentKeys }) => ({
    current: paymentKey,
    previous: previousPaymentKeys,
  }),
  database: ({ payments }) => payments,
  openKeys: (config) => openPaymentMasterKeys(config),
  files: paymentKeyFiles,
  tables: [
    { name: 'payment_keys', id: 'kid', owner: "'' AS vendor_id, NULL AS business_id", purpose: 'payment' },
  ],
  // loaded when it is called: commands are listed without it
  replacePairs: async (database, keys) =>
    (await import('./keys/payment-keys.ts')).replacePairs(database, keys),
})
