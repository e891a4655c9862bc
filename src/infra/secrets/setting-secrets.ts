import type { Config } from '../config.ts'
import type { Scrubber } from './scrubber.ts'

/** Tells the scrubber what of the settings must show nowhere. */
export const scrubSettings = (config: Config, scrubber: Pick<Scrubber, 'add'>): void => {
  const { database, redisUrl, masterKey, previousMasterKeys, adminToken, openai, client, storage } = config
  const secrets = [
    masterKey,
    ...previousMasterKeys,
    adminToken,
    openai?.apiKey,
    ...Object.values(storage).map(({ secretAccessKey }) => secretAccessKey),
    client.token,
    ...(database.kind === 'postgres' ? passwordIn(database.url) : []),
    ...(redisUrl ? passwordIn(redisUrl) : []),
  ]
  for (const secret of secrets) if (typeof secret === 'string') scrubber.add(secret)
}

/** As it stands in the address, and as it is sent. One that is also the name of its user is no secret. */
const passwordIn = (url: string): string[] => {
  const { username, password } = new URL(url)
  return password === username ? [] : [password, decoded(password)]
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
