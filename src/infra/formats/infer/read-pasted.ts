import type { StreamFormat } from '../../../state/registry/response-format.ts'
import { framesOf } from '../events.ts'

/** What was pasted: one answer, or a stream. Null: neither. */
export type Pasted =
  | { kind: 'whole'; raw: unknown }
  | { kind: 'stream'; raw: string; format: StreamFormat['format']; done: string | null; events: unknown[] }

const parsed = (text: string): { value: unknown } | null => {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return null
  }
}

export const readPasted = (raw: unknown): Pasted | null => {
  if (typeof raw !== 'string') return { kind: 'whole', raw }
  const whole = parsed(raw)
  if (whole !== null && typeof whole.value === 'object') return { kind: 'whole', raw: whole.value }
  const format = /^\s*(data|event|id|retry|):/m.test(raw) ? 'sse' : 'ndjson'
  const frames = framesOf(raw, format)
  const last = frames.at(-1)
  if (last === undefined) return null
  const done = parsed(last) === null ? last.trim() : null
  const events = (done === null ? frames : frames.slice(0, -1)).map(parsed)
  if (events.length === 0 || events.some((event) => event === null)) return null
  return { kind: 'stream', raw, format, done, events: events.map((event) => event?.value) }
}
