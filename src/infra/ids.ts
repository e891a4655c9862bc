import { createHash, randomBytes } from 'node:crypto'

/** Ids that sort by the time they were made (UUID v7 layout, RFC 9562, without dashes). */
const timeOrdered = (): string => {
  const bytes = randomBytes(16)
  bytes.writeUIntBE(Date.now(), 0, 6)
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  return bytes.toString('hex')
}

export const newRunId = (): string => `run_${timeOrdered()}`
export const newSessionId = (): string => `ses_${timeOrdered()}`
export const newInputRequestId = (): string => `inp_${timeOrdered()}`
export const newWorkerId = (): string => `worker_${process.pid}_${randomBytes(4).toString('hex')}`
export const newAttemptId = (): string => timeOrdered()

export const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex')

const sortKeys = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
      .map(([key, item]) => [key, sortKeys(item)]),
  )
}

/** The same for two values that differ only in the order of their keys. */
export const contentHash = (value: unknown): string => sha256(JSON.stringify(sortKeys(value)))
