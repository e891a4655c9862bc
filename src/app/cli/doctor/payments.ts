import { openPaymentMasterKeys } from '../../../infra/secrets/master-key-files.ts'
import { checkKeyPairs } from '../../../payments/keys/payment-keys.ts'
import { isMasonError } from '../../../state/errors.ts'
import { type DoctorCheck, fail, pass } from './check.ts'
import { withUnmigratedDatabase } from './database.ts'

/** Where the executor of payments runs, and whether its key opens its private keys. */
export const checkPayments: DoctorCheck = async (config) => {
  const { database } = config
  if (database.kind !== 'postgres')
    return [
      pass(
        'embedded: the executor runs inside `mason serve`, for test providers only; its key is in DATA_DIR, beside what it protects',
      ),
    ]
  if (database.paymentUrl === undefined) return []
  const keys = await openPaymentMasterKeys(config)
  try {
    const pairs = await withUnmigratedDatabase(config, (opened) => checkKeyPairs(opened, keys))
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
}
