import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { MasonError } from '../../state/errors.ts'
import type { MasterKeys } from './master-keys.ts'
import { Secret } from './secret.ts'

/**
 * Envelope encryption of one text in one row: AES-256-GCM (NIST SP 800-38D) under the row's own data key, which a named
 * master key wraps in the same way. Both are bound to the row, so neither can be opened in another row.
 * Layout of each: version (1 byte), nonce (12), ciphertext, tag (16).
 */

/** An encrypted text as the columns `master_key`, `wrapped_key` and `sealed_…` store it. */
export type SealedText = { master_key: string; wrapped_key: Uint8Array; sealed: Uint8Array }

/** Which row the text belongs to. */
export type SealBinding = {
  purpose: 'secret' | 'headers' | 'webhook' | 'business' | 'push' | 'payment'
  /** Empty where it is of no vendor. */
  vendor_id: string
  /** The id of the key, the endpoint, the webhook secret, the business or the executor's key pair. */
  row_id: string
  /** The owner; absent for the shared registry. */
  business_id?: string
}

const version = 1
const nonceBytes = 12
const tagBytes = 16

/** Encrypts a text. Every call uses a new data key, so equal texts have different ciphertexts. */
export const sealText = (text: string, binding: SealBinding, keys: MasterKeys): SealedText => {
  const dataKey = randomBytes(32)
  const sealed = encrypt(Buffer.from(text), createSecretKey(dataKey), toAdditionalData('text', binding))
  return { ...wrapKey(dataKey, binding, keys), sealed }
}

/** Decrypts a text. Throws `secret_unreadable` when it was changed, is from another row, or has an unknown master key. */
export const openSealedText = (row: SealedText, binding: SealBinding, keys: MasterKeys): Secret => {
  const dataKey = unwrapKey(row, binding, keys)
  const text = decrypt(row.sealed, createSecretKey(dataKey), toAdditionalData('text', binding), binding)
  dataKey.fill(0)
  return new Secret(text.toString())
}

/** Wraps the same data key under the current master key; the ciphertext stays the same. Throws as `openSealedText`. */
export const rewrapKey = (row: WrappedKey, binding: SealBinding, keys: MasterKeys): WrappedKey =>
  wrapKey(unwrapKey(row, binding, keys), binding, keys)

type WrappedKey = Omit<SealedText, 'sealed'>

/** Wraps the data key under the current master key, and erases it from memory. */
const wrapKey = (dataKey: Buffer, binding: SealBinding, keys: MasterKeys): WrappedKey => {
  const { name, key } = keys.current()
  const wrapped_key = encrypt(dataKey, key, toAdditionalData(name, binding))
  dataKey.fill(0)
  return { master_key: name, wrapped_key }
}

const unwrapKey = (
  { master_key, wrapped_key }: WrappedKey,
  binding: SealBinding,
  keys: MasterKeys,
): Buffer => {
  const master = keys.find(master_key)
  const isPayment = binding.purpose === 'payment'
  if (master) return decrypt(wrapped_key, master.key, toAdditionalData(master.name, binding), binding)
  throw new MasonError(
    'secret_unreadable',
    `the ${describeSealed(binding)} is encrypted under ${isPayment ? 'payment' : 'master'} key ${master_key}, which this process does not have`,
    {
      remedy: `add that key to MASON_PREVIOUS_${isPayment ? 'PAYMENT' : 'MASTER'}_KEYS, or ${toReentryRemedy(binding)}`,
      detail: { row_id: binding.row_id, master_key },
    },
  )
}

/** Unambiguous for any ids. `layer` keeps a wrapped key and an encrypted text from being swapped. */
const toAdditionalData = (
  layer: string,
  { purpose, business_id = '*', vendor_id, row_id }: SealBinding,
): Buffer => Buffer.from(JSON.stringify(['mason', version, layer, purpose, business_id, vendor_id, row_id]))

const encrypt = (plain: Buffer, key: KeyObject, bound: Buffer): Buffer => {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes }).setAAD(bound)
  const body = Buffer.concat([cipher.update(plain), cipher.final()])
  return Buffer.concat([Buffer.of(version), nonce, body, cipher.getAuthTag()])
}

const decrypt = (bytes: Uint8Array, key: KeyObject, bound: Buffer, binding: SealBinding): Buffer => {
  const end = bytes.length - tagBytes
  if (bytes[0] !== version || end < 1 + nonceBytes) throw createDamagedError(binding)
  const nonce = bytes.subarray(1, 1 + nonceBytes)
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
    .setAAD(bound)
    .setAuthTag(bytes.subarray(end))
  const body = decipher.update(bytes.subarray(1 + nonceBytes, end))
  try {
    return Buffer.concat([body, decipher.final()])
  } catch {
    body.fill(0)
    throw createDamagedError(binding)
  }
}

const createDamagedError = (binding: SealBinding): MasonError =>
  new MasonError(
    'secret_unreadable',
    `the ${describeSealed(binding)} cannot be decrypted: the row was changed, copied from another row or written by a newer Mason`,
    {
      remedy: `restore the row from a backup, or ${toReentryRemedy(binding)}`,
      detail: { row_id: binding.row_id },
    },
  )

const sealedNames = {
  secret: 'secret of key',
  headers: 'headers of endpoint',
  webhook: 'webhook secret',
  business: 'secrets of business',
  push: 'secrets of push configuration',
  payment: "executor's private key",
}
const describeSealed = ({ purpose, row_id }: SealBinding): string => `${sealedNames[purpose]} ${row_id}`

const toReentryRemedy = ({ purpose, vendor_id, row_id, business_id }: SealBinding): string =>
  ({
    secret: `enter the secret again: POST /admin/v1/vendors/${vendor_id}/keys/${row_id}/rotate`,
    headers: `enter the headers again: PATCH /admin/v1/vendors/${vendor_id}/endpoints/${row_id}`,
    webhook: `make a new secret: POST /admin/v1/businesses/${business_id}/webhook/rotate`,
    business: `enter the secrets again: PATCH /admin/v1/businesses/${row_id}`,
    push: 'let the agent that called set it again',
    payment: 'run `mason keys rotate --payments`, and enter the secrets of providers again',
  })[purpose]
