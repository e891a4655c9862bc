import type { Config } from '../../../infra/config/config.ts'
import { createKeyFiles, openKeys } from '../../../infra/secrets/master-key-files.ts'
import type { MasterKeys } from '../../../infra/secrets/master-keys.ts'

/** The files of the executor's key in DATA_DIR. */
export const paymentKeyFiles = createKeyFiles(
  'payment-key',
  'restore it from a backup; without it the secrets of payment providers are unreadable, so remove it only to enter them again',
)

/** The keys under which the private keys of the executor are sealed; otherwise as `openMasterKeys`. */
export const openPaymentMasterKeys = (
  config: Pick<Config, 'database' | 'paymentKey' | 'previousPaymentKeys'>,
  onSecret: (secret: string) => void = () => {},
): Promise<MasterKeys> =>
  openKeys(config.database, paymentKeyFiles, config.paymentKey, config.previousPaymentKeys, onSecret)
