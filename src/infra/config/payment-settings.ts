/** The settings that the executor of payments has alone: all of infra/config and infra/database that names them reads this file. */
export const paymentSettings = {
  url: 'MASON_PAYMENT_DATABASE_URL',
  key: 'MASON_PAYMENT_KEY',
  previousKeys: 'MASON_PREVIOUS_PAYMENT_KEYS',
} as const
type PaymentSetting = (typeof paymentSettings)[keyof typeof paymentSettings]

/** The part of the settings' schema. */
export const createPaymentShape = <Address, Key, Keys>(address: Address, key: Key, keys: Keys) => ({
  [paymentSettings.url]: address,
  [paymentSettings.key]: key,
  [paymentSettings.previousKeys]: keys,
})

/** What to do about a wrong value of each. */
export const createPaymentRemedies = (keyCommand: string): Record<PaymentSetting, string> => ({
  [paymentSettings.url]:
    'set it, for the executor of payments alone, to a login of its own, for example postgres://mason_pay:password@127.0.0.1:5432/mason; `mason migrate` creates it',
  [paymentSettings.key]: `create one, and set it for the executor of payments alone: ${keyCommand}`,
  [paymentSettings.previousKeys]: `copy the earlier values of ${paymentSettings.key} again, separated by commas`,
})

type PaymentRaw = { [Name in PaymentSetting | 'MASON_MASTER_KEY' | 'MASON_PUBLIC_URL']?: string }

/** What the executor lacks, and what must not be set together. `findSharedUser`: the other setting with the user of this address. */
export const createPaymentRules = <Raw extends PaymentRaw>(
  isServed: (raw: Raw) => boolean,
  findSharedUser: (raw: Raw, url: string) => string | undefined,
) =>
  [
    {
      roles: ['payments'],
      setting: paymentSettings.url,
      problem: (raw: Raw) => {
        const url = raw[paymentSettings.url]
        if (url === undefined)
          return isServed(raw)
            ? 'is missing: the executor of payments never uses the login of another process'
            : 'is missing: without a database server the executor runs inside `mason serve`, not in a process of its own'
        const name = findSharedUser(raw, url)
        return (
          name !== undefined &&
          `names the user of ${name}: the executor needs a login that no other process has`
        )
      },
    },
    {
      roles: ['payments'],
      setting: 'MASON_PUBLIC_URL',
      problem: (raw: Raw) =>
        raw[paymentSettings.url] !== undefined &&
        raw.MASON_PUBLIC_URL === undefined &&
        'is missing: mandates are made for this address, and receipts are signed as it',
    },
    {
      roles: ['payments'],
      setting: paymentSettings.key,
      problem: (raw: Raw) =>
        raw[paymentSettings.url] !== undefined &&
        raw[paymentSettings.key] === undefined &&
        'is missing: it encrypts the private keys of the executor in the database',
    },
    {
      roles: ['serve', 'api', 'payments', 'keys'],
      setting: paymentSettings.key,
      problem: (raw: Raw) =>
        raw[paymentSettings.key] !== undefined &&
        raw[paymentSettings.key] === raw.MASON_MASTER_KEY &&
        'is the same as MASON_MASTER_KEY, which API and workers have',
    },
  ] as const
