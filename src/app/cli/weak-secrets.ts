import type { Config } from '../../infra/config/config.ts'
import { adminTokenCommand, masterKeyCommand } from '../../infra/config/settings.ts'

/** A secret of the settings that could be guessed, and how to make a good one. Never contains the secret. */
export type WeakSecret = { problem: string; remedy: string }

const minTokenLength = 24
/** Random values have more different ones with near certainty: of 24 hex digits, of 32 bytes. */
const [minTokenVariety, minKeyVariety] = [6, 16]

/** The secrets of the settings that are short, or visibly not random. */
export const listWeakSecrets = ({
  adminToken,
  masterKey,
  paymentKey = null,
}: Pick<Config, 'adminToken' | 'masterKey'> & Partial<Pick<Config, 'paymentKey'>>): WeakSecret[] => {
  const token = adminToken === null ? null : findTokenWeakness(adminToken)
  const keys = Object.entries({ MASTER: masterKey, PAYMENT: paymentKey }).flatMap(([name, key]) => {
    const weakness = key === null ? null : findKeyWeakness(Buffer.from(key, 'base64'))
    return weakness === null ? [] : [{ name, weakness }]
  })
  return [
    ...(token === null
      ? []
      : [{ problem: `MASON_ADMIN_TOKEN ${token}`, remedy: `create a random one: ${adminTokenCommand}` }]),
    ...keys.map(({ name, weakness }) => ({
      problem: `MASON_${name}_KEY ${weakness}`,
      remedy: `create a random one (${masterKeyCommand}), set the present one as MASON_PREVIOUS_${name}_KEYS, and run mason keys rotate${name === 'PAYMENT' ? ' --payments' : ''}`,
    })),
  ]
}

const findTokenWeakness = (token: string): string | null => {
  if (token.length < minTokenLength)
    return `has ${token.length} characters: fewer than ${minTokenLength} can be guessed`
  return new Set(token).size < minTokenVariety ? 'repeats a few characters' : null
}

const findKeyWeakness = (key: Buffer): string | null => {
  const steps = key.map((byte, at) => byte - (key[at - 1] ?? 0))
  if (new Set(key).size < minKeyVariety || new Set(steps).size < minKeyVariety)
    return 'repeats a few bytes, or counts: it is not random'
  return key.every((byte) => byte >= 0x20 && byte < 0x7f) ? 'is a text in base64: it is not random' : null
}
