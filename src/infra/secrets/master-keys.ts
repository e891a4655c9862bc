import { createSecretKey, type KeyObject } from 'node:crypto'
import { MasonError } from '../../state/errors.ts'
import { sha256 } from '../lib/ids.ts'

/** A key that wraps the data keys of rows. Its name is not a secret; every row that it wraps stores the name. */
type MasterKey = {
  readonly name: string
  /** @internal */
  readonly key: KeyObject
}

/** The keys of this process: all of them decrypt, the current one encrypts. */
export type MasterKeys = ReturnType<typeof createMasterKeys>

/** Each key is 32 bytes in base64, as the settings validate it. The same key may occur more than once. */
export const createMasterKeys = (current: string | null, previous: readonly string[] = []) => {
  const first = current === null ? null : toMasterKey(current)
  const byName = new Map<string, MasterKey>()
  for (const one of [...(first ? [first] : []), ...previous.map(toMasterKey)]) byName.set(one.name, one)
  return {
    /** Throws `secret_unreadable` where the settings have none. */
    current(): MasterKey {
      if (first) return first
      throw new MasonError('secret_unreadable', 'there is no master key to encrypt secrets with', {
        remedy: 'set MASON_MASTER_KEY to the same value for every process',
      })
    },
    find: (name: string): MasterKey | null => byName.get(name) ?? null,
  }
}

const toMasterKey = (base64: string): MasterKey => {
  const bytes = Buffer.from(base64, 'base64')
  const name = sha256(Buffer.concat([Buffer.from('mason master key\n'), bytes])).slice(0, 16)
  return { name, key: createSecretKey(bytes) }
}
