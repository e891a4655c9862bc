import { z } from 'zod'
import { isSameJson } from '../json.ts'

const toCamelCase = (name: string): string =>
  name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

/**
 * An object that is read with its snake_case names, with the same in camelCase (the open TypeScript draft) and with `oldNames`;
 * written with snake_case alone. Null members count as absent. Unknown members stay. Two names of one member with different values
 * are refused: another reader would see the other one.
 */
export const createNamedSchema = <Shape extends z.ZodRawShape>(
  shape: Shape,
  oldNames: Record<string, string> = {},
  readOldForm: (value: object) => object = (value) => value,
) => {
  const names = new Map([
    ...Object.keys(shape).map((name) => [toCamelCase(name), name] as const),
    ...Object.entries(oldNames),
  ])
  return z.codec(z.unknown(), z.looseObject(shape), {
    decode: (value, { issues }) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return value as never
      const members = new Map<string, { written: string; member: unknown }>()
      for (const [written, member] of Object.entries(readOldForm(value))) {
        if (member == null) continue
        const name = names.get(written) ?? written
        const before = members.get(name)
        if (before && !isSameJson(before.member, member)) {
          const oldName = written === name ? before.written : written
          const message = `has another value than ${name}, of which it is an older name: send ${name} alone`
          issues.push({
            code: 'custom',
            input: value,
            path: [oldName],
            message,
            params: { code: 'conflicting_names' },
          })
        }
        members.set(name, { written, member })
      }
      return Object.fromEntries([...members].map(([name, { member }]) => [name, member])) as never
    },
    encode: (value) => value,
  })
}
