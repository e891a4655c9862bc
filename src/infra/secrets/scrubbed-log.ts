import type { Log } from '../../state/ports/log.ts'
import type { Scrubber } from './scrubber.ts'
import { Secret } from './secret.ts'

/** A log that removes known secrets from messages, data, errors and their causes. */
export const createScrubbedLog = (log: Log, scrubber: Pick<Scrubber, 'text'>): Log => ({
  debug: (data, message) => log.debug(scrubValue(data, scrubber), scrubber.text(message)),
  info: (data, message) => log.info(scrubValue(data, scrubber), scrubber.text(message)),
  warn: (data, message) => log.warn(scrubValue(data, scrubber), scrubber.text(message)),
  error: (data, message) => log.error(scrubValue(data, scrubber), scrubber.text(message)),
})

/** A line of a log without known secrets. A JSON line stays JSON, even when a secret consists of digits. */
export const scrubLine = (line: string, scrubber: Pick<Scrubber, 'text'>): string => {
  const clean = scrubber.text(line)
  if (clean === line) return line
  const end = line.endsWith('\n') ? '\n' : ''
  try {
    return JSON.stringify(scrubValue(JSON.parse(line) as unknown, scrubber)) + end
  } catch {
    return clean
  }
}

/** Deeper than any log prints. */
const maxDepth = 12

/**
 * A value without known secrets: the value itself when it has none, else a copy of the changed parts. Field names and the
 * hidden fields of errors are scrubbed too; bytes are not.
 */
export const scrubValue = <Value>(value: Value, scrubber: Pick<Scrubber, 'text'>): Value => {
  const done = new Map<object, unknown>()
  const clean = (item: unknown, depth: number): unknown => {
    if (typeof item === 'string') return scrubber.text(item)
    if (typeof item === 'number' || typeof item === 'bigint') {
      const text = String(item)
      return scrubber.text(text) === text ? item : scrubber.text(text)
    }
    if (typeof item !== 'object' || item === null) return item
    if (ArrayBuffer.isView(item) || item instanceof Secret) return item
    if (done.has(item)) return done.get(item)
    if (depth > maxDepth) return '[deep]'
    // a reference back to it becomes this mark
    done.set(item, '[circular]')
    const isCollection = Array.isArray(item) || item instanceof Map || item instanceof Set
    const result = isCollection ? cleanItems(item, depth) : cleanFields(item, depth)
    done.set(item, result)
    return result
  }
  /** A copy with changed items is an array, also of a map or a set. */
  const cleanItems = (items: Iterable<unknown>, depth: number): Iterable<unknown> => {
    const before = [...items]
    const after = before.map((item) => clean(item, depth + 1))
    return after.every((item, index) => item === before[index]) ? items : after
  }
  const cleanFields = (fields: object, depth: number): unknown => {
    const names = fields instanceof Error ? Object.getOwnPropertyNames(fields) : Object.keys(fields)
    const before = names.map((name) => [name, (fields as Record<string, unknown>)[name]] as const)
    const after = before.map(([name, item]) => [scrubber.text(name), clean(item, depth + 1)] as const)
    if (after.every(([name, item], index) => name === names[index] && item === before[index]?.[1]))
      return fields
    // serializers recognize errors by their prototype
    const copy: object = fields instanceof Error ? Object.create(Object.getPrototypeOf(fields) as object) : {}
    for (const [name, item] of after)
      Object.defineProperty(copy, name, {
        value: item,
        enumerable: Object.prototype.propertyIsEnumerable.call(fields, name) || !names.includes(name),
        configurable: true,
        writable: true,
      })
    return copy
  }
  return clean(value, 0) as Value
}
