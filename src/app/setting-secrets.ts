import type { Config } from '../infra/config/config.ts'
import type { Scrubber } from '../infra/secrets/scrubber.ts'

/** Adds the secrets of the settings to the scrubber. */
export const addSettingSecrets = (config: Config, scrubber: Pick<Scrubber, 'add'>): void => {
  const { database, redisUrl, masterKey, paymentKey, adminToken, openai, client, storage } = config
  const secrets = [
    masterKey,
    ...config.queueSecrets,
    paymentKey,
    ...config.previousMasterKeys,
    ...config.previousPaymentKeys,
    adminToken,
    openai?.apiKey,
    ...Object.values(storage).map(({ secretAccessKey }) => secretAccessKey),
    client.token,
    ...Object.entries(config.featureVariables ?? {}).flatMap(([name, value]) =>
      /(KEY|SECRET|TOKEN|PASSWORD)S?$/.test(name) ? [value] : [],
    ),
    ...(database.kind === 'postgres'
      ? [database.url, database.apiUrl, database.workerUrl, database.paymentUrl, database.migrateUrl].flatMap(
          (url) => (url === undefined ? [] : listPasswords(url)),
        )
      : []),
    ...(redisUrl ? listPasswords(redisUrl) : []),
  ]
  for (const secret of secrets) if (typeof secret === 'string') scrubber.add(secret)
}

/** The password as it is in the address, and decoded. A password equal to the user name is not treated as a secret. */
const listPasswords = (url: string): string[] => {
  const { username, password } = new URL(url)
  return password === username ? [] : [password, decodeSafely(password)]
}

const decodeSafely = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
