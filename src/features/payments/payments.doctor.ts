import { isMasonError } from '../../state/errors.ts'
import { defineDoctor } from '../definitions.ts'
import { openPaymentMasterKeys } from './keys/executor-master-keys.ts'

/** Where the executor runs, and whether its key opens its private keys. */
export default defineDoctor({
  name: 'payments',
  settings: ['MASON_PAYMENT_KEY', 'MASON_PREVIOUS_PAYMENT_KEYS'],
  async check(config, { readDatabase, pass, fail }) {
    const { database } = config
    if (database.kind !== 'postgres')
      return [
        pass(
          'embedded: the executor runs inside `mason serve`, for test providers only; its key is in DATA_DIR, beside what it protects',
        ),
      ]
    if (database.paymentUrl === undefined) return []
    const keys = await openPaymentMasterKeys(config)
    const { checkKeyPairs } = await import('./keys/payment-keys.ts')
    try {
      const pairs = await readDatabase((opened) => checkKeyPairs(opened, keys))
      return [
        pass(
          pairs === 0
            ? 'no key pair yet: the first start of `mason payments` makes them'
            : `the payment key opens the executor's private keys`,
        ),
      ]
    } catch (error) {
      if (!isMasonError(error, 'secret_unreadable')) throw error
      return [fail(error.message, error.remedy ?? '')]
    }
  },
})
