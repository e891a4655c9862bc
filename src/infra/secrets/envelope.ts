import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { MasonError } from '../../state/errors.ts'
import type { MasterKey, MasterKeys } from './master-keys.ts'
import { Secret } from './secret.ts'

/**
 * Envelope encryption of one text in one row: AES-256-GCM (NIST SP 800-38D) under a data key of the row's own, which a
 * named master key wraps in the same way. Both are bound to the row, so that neither opens anywhere else.
 * Layout of each: version (1 byte), nonce (12), ciphertext, tag (16).
 */

/** As it stands in the columns `master_key`, `wrapped_key` and `sealed_…`. */
export type Sealed = { master_key: string; wrapped_key: Uint8Array; sealed: Uint8Array }

/** Which row the text belongs to. */
export type SealedPlace = {
  purpose: 'secret' | 'headers'
  vendor_id: string
  /** The id of the key or the endpoint. */
  row_id: string
  /** Whose it is; absent: the registry's own. */
  business_id?: string
}

const version = 1
const nonceBytes = 12
const tagBytes = 16

/** A fresh data key every time, so that a text that is sealed twice shows nothing of it. */
export const seal = (text: string, place: SealedPlace, keys: MasterKeys): Sealed => {
  const master = keys.current()
  const dataKey = randomBytes(32)
  const sealed = encrypt(Buffer.from(text), createSecretKey(dataKey), boundTo('text', place))
  const wrapped_key = wrap(dataKey, master, place)
  dataKey.fill(0)
  return { master_key: master.name, wrapped_key, sealed }
}

/** Throws `secret_unreadable` when anything was changed, comes from another row, or is under an unknown master key. */
export const open = (row: Sealed, place: SealedPlace, keys: MasterKeys): Secret => {
  const dataKey = unwrap(row, place, keys)
  const text = decrypt(row.sealed, createSecretKey(dataKey), boundTo('text', place), place)
  dataKey.fill(0)
  return new Secret(text.toString())
}

/** The same data key under the current master key; what it seals stays as it is. Throws as `open`. */
export const rewrap = (
  row: Omit<Sealed, 'sealed'>,
  place: SealedPlace,
  keys: MasterKeys,
): Omit<Sealed, 'sealed'> => {
  const dataKey = unwrap(row, place, keys)
  const master = keys.current()
  const wrapped_key = wrap(dataKey, master, place)
  dataKey.fill(0)
  return { master_key: master.name, wrapped_key }
}

const wrap = (dataKey: Buffer, master: MasterKey, place: SealedPlace): Buffer =>
  encrypt(dataKey, master.key, boundTo(master.name, place))

const unwrap = (
  { master_key, wrapped_key }: Omit<Sealed, 'sealed'>,
  place: SealedPlace,
  keys: MasterKeys,
): Buffer => {
  const master = keys.find(master_key)
  if (master) return decrypt(wrapped_key, master.key, boundTo(master.name, place), place)
  throw new MasonError(
    'secret_unreadable',
    `the ${nameOf(place)} is sealed under master key ${master_key}, which this process does not have`,
    {
      remedy: `add that key to MASON_PREVIOUS_MASTER_KEYS, or ${enterAnew(place)}`,
      detail: { row_id: place.row_id, master_key },
    },
  )
}

/** Unambiguous whatever the ids hold. `layer` keeps a wrapped key and a sealed text from standing in for each other. */
const boundTo = (layer: string, { purpose, business_id = '*', vendor_id, row_id }: SealedPlace): Buffer =>
  Buffer.from(JSON.stringify(['mason', version, layer, purpose, business_id, vendor_id, row_id]))

const encrypt = (plain: Buffer, key: KeyObject, bound: Buffer): Buffer => {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes }).setAAD(bound)
  const body = Buffer.concat([cipher.update(plain), cipher.final()])
  return Buffer.concat([Buffer.of(version), nonce, body, cipher.getAuthTag()])
}

const decrypt = (bytes: Uint8Array, key: KeyObject, bound: Buffer, place: SealedPlace): Buffer => {
  const end = bytes.length - tagBytes
  if (bytes[0] !== version || end < 1 + nonceBytes) throw damaged(place)
  const nonce = bytes.subarray(1, 1 + nonceBytes)
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
    .setAAD(bound)
    .setAuthTag(bytes.subarray(end))
  const body = decipher.update(bytes.subarray(1 + nonceBytes, end))
  try {
    return Buffer.concat([body, decipher.final()])
  } catch {
    body.fill(0)
    throw damaged(place)
  }
}

const damaged = (place: SealedPlace): MasonError =>
  new MasonError(
    'secret_unreadable',
    `the ${nameOf(place)} cannot be opened: what is stored was changed, comes from another row or from a newer Mason`,
    {
      remedy: `put the row back from a backup, or ${enterAnew(place)}`,
      detail: { row_id: place.row_id },
    },
  )

const nameOf = ({ purpose, row_id }: SealedPlace): string =>
  purpose === 'secret' ? `secret of key ${row_id}` : `headers of endpoint ${row_id}`

const enterAnew = ({ purpose, vendor_id, row_id }: SealedPlace): string =>
  purpose === 'secret'
    ? `enter the secret anew: POST /admin/v1/vendors/${vendor_id}/keys/${row_id}/rotate`
    : `enter the headers anew: PATCH /admin/v1/vendors/${vendor_id}/endpoints/${row_id}`
