import { toMasonError } from '../../state/errors.ts'
import { open, type Sealed, type SealedPlace, seal } from '../secrets/envelope.ts'
import type { MasterKeys } from '../secrets/master-keys.ts'
import { isShownHeader } from '../secrets/redaction.ts'

/** Headers of an endpoint in its columns; null where it has none. */
export type HeaderColumns = {
  master_key: string | null
  wrapped_key: Uint8Array | null
  sealed_headers: Uint8Array | null
}
type Headers = Record<string, string>

const placeOf = (vendor_id: string, row_id: string): SealedPlace => ({
  purpose: 'headers',
  vendor_id,
  row_id,
})

export const sealHeaders = (
  headers: Headers,
  vendorId: string,
  id: string,
  keys: MasterKeys,
): HeaderColumns => {
  if (Object.keys(headers).length === 0) return { master_key: null, wrapped_key: null, sealed_headers: null }
  const { master_key, wrapped_key, sealed } = seal(JSON.stringify(headers), placeOf(vendorId, id), keys)
  return { master_key, wrapped_key, sealed_headers: sealed }
}

/** Throws `secret_unreadable`. */
export const openHeaders = (
  columns: HeaderColumns & { id: string; vendor_id: string },
  keys: MasterKeys,
): Headers => {
  const { master_key, wrapped_key, sealed_headers: sealed } = columns
  if (master_key === null || wrapped_key === null || sealed === null) return {}
  const row: Sealed = { master_key, wrapped_key, sealed }
  return JSON.parse(open(row, placeOf(columns.vendor_id, columns.id), keys).reveal()) as Headers
}

export const shownHeaders = (read: () => Headers): Headers => {
  try {
    const shown = (name: string, value: string) => (isShownHeader(name) ? value : '…')
    return Object.fromEntries(Object.entries(read()).map(([name, value]) => [name, shown(name, value)]))
  } catch (error) {
    return { '…': toMasonError(error).message }
  }
}
