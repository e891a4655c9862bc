import { z } from 'zod'
import { MasonError } from '../../../state/errors.ts'
import { omitNulls, writeJson } from './json.ts'
import { toViolations } from './violations.ts'

/** A mandate that Mason made, before it is signed: as on the wire, and its JSON text. */
export type Built = { wire: Record<string, unknown>; raw: string }

/** Writes a value by its schema: snake_case, no nulls, amounts from digits. Throws where the value is incomplete. */
export const buildBy =
  <Schema extends z.ZodType>(schema: Schema) =>
  (value: z.output<Schema>): Built => {
    const encoded = z.safeEncode(schema, value, { reportInput: true })
    if (!encoded.success) {
      const violations = toViolations(encoded.error)
      throw new MasonError('invalid_request', 'the mandate is incomplete', {
        remedy: violations.map(({ message }) => message).join('; '),
        detail: { violations },
      })
    }
    const wire = omitNulls(encoded.data) as Record<string, unknown>
    return { wire, raw: writeJson(wire) }
  }
