import type { Log } from '../../state/ports.ts'
import type { Scrubber } from './scrubber.ts'
import { Secret } from './secret.ts'

/** The same log without known secrets, whatever it is given: messages, data, errors and their causes. */
export const scrubbedLog = (log: Log, scrubber: Pick<Scrubber, 'text'>): Log => ({
  debug: (data, message) => log.debug(scrubValue(data, scrubber), scrubber.text(message)),
  info: (data, message) => log.info(scrubValue(data, scrubber), scrubber.text(message)),
  warn: (data, message) => log.warn(scrubValue(data, scrubber), scrubber.text(message)),
  error: (data, message) => log.error(scrubValue(data, scrubber), scrubber.text(message)),
})

/** One line of a log. Where it is JSON it stays JSON, also when a secret is all digits. */
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

/** Deeper than any log looks. */
const deepest = 12

/**
 * A value without known secrets: itself when it holds none, else a copy of what has to differ. Names of fields count,
 * and those of errors that do not show in JSON. Bytes are left alone.
 */
export const scrubValue = <Value>(value: Value, scrubber: Pick<Scrubber, 'text'>): Value => {
  const done = new Map<object, unknown>()
  const clean = (one: unknown, depth: number): unknown => {
    if (typeof one === 'string') return scrubber.text(one)
    if (typeof one === 'number' || typeof one === 'bigint') {
      const text = String(one)
      return scrubber.text(text) === text ? one : scrubber.text(text)
    }
    if (typeof one !== 'object' || one === null) return one
    if (ArrayBuffer.isView(one) || one instanceof Secret) return one
    if (done.has(one)) return done.get(one)
    if (depth > deepest) return '[deep]'
    // what leads back to it finds it unchanged, or not at all
    done.set(one, '[circular]')
    const result =
      one instanceof Map || one instanceof Set
        ? cleanCollection(one, depth)
        : Array.isArray(one)
          ? cleanList(one, depth)
          : cleanFields(one, depth)
    done.set(one, result)
    return result
  }
  const cleanList = (list: readonly unknown[], depth: number): readonly unknown[] => {
    const items = list.map((item) => clean(item, depth + 1))
    return items.every((item, index) => item === list[index]) ? list : items
  }
  const cleanCollection = (items: Iterable<unknown>, depth: number): unknown => {
    const list = [...items]
    const cleaned = cleanList(list, depth)
    return cleaned === list ? items : cleaned
  }
  const cleanFields = (fields: object, depth: number): unknown => {
    const names = fields instanceof Error ? Object.getOwnPropertyNames(fields) : Object.keys(fields)
    const before = names.map((name) => [name, (fields as Record<string, unknown>)[name]] as const)
    const after = before.map(([name, item]) => [scrubber.text(name), clean(item, depth + 1)] as const)
    if (after.every(([name, item], index) => name === names[index] && item === before[index]?.[1]))
      return fields
    // serializers know errors by their prototype
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
