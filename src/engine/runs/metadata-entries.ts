import { sha256 } from '../../infra/lib/ids.ts'
import { toStoredText } from '../../infra/lib/json-text.ts'
import type { RunRequest } from '../../state/run-request.ts'

/**
 * What a run is found by: 32 hexadecimal digits for each member of its metadata that is no object and no list. Numbers, true,
 * false and null are found by their JSON. A hash, because a value can be longer than an index takes, and because SQL never
 * reads what people wrote (decision 70).
 */
export const toMetadataEntries = (metadata: RunRequest['metadata'] = {}): string[] =>
  Object.entries(metadata)
    .filter(([, value]) => typeof value !== 'object' || value === null)
    .map(([key, value]) => toEntry(key, String(value)))

/** Of the text as Postgres can hold it: without NUL and half surrogate pairs. */
const toEntry = (key: string, value: string): string => {
  const [name, text] = [toStoredText(key), toStoredText(value)]
  return sha256(`${Buffer.byteLength(name)}:${name}${text}`).slice(0, 32)
}
