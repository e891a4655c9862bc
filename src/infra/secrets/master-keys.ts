import { createSecretKey, type KeyObject } from 'node:crypto'
import { MasonError } from '../../state/errors.ts'
import { sha256 } from '../ids.ts'

/** A key that wraps the data keys of rows. Its name is no secret and stands in every row that it wraps. */
export type MasterKey = { readonly name: string; readonly key: KeyObject }

/** What this process can open: rows under any of them. New rows and rewrapped ones go under the current one. */
export type MasterKeys = {
  /** Throws `secret_unreadable` where the settings bring none. */
  current(): MasterKey
  find(name: string): MasterKey | null
}

/** From base64 of 32 bytes each, as the settings check it. The same key may be named more than once. */
export const createMasterKeys = (current: string | null, previous: readonly string[] = []): MasterKeys => {
  const first = current === null ? null : masterKeyOf(current)
  const byName = new Map<string, MasterKey>()
  for (const one of [...(first ? [first] : []), ...previous.map(masterKeyOf)]) byName.set(one.name, one)
  return {
    current() {
      if (first) return first
      throw new MasonError('secret_unreadable', 'there is no master key to seal secrets with', {
        remedy: 'set MASON_MASTER_KEY, the same for every process',
      })
    },
    find: (name) => byName.get(name) ?? null,
  }
}

const masterKeyOf = (base64: string): MasterKey => {
  const bytes = Buffer.from(base64, 'base64')
  const name = sha256(Buffer.concat([Buffer.from('mason master key\n'), bytes])).slice(0, 16)
  return { name, key: createSecretKey(bytes) }
}
