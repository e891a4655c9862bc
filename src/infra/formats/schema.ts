import { z } from 'zod'
import { Unreadable } from '../models/unreadable.ts'
import { escapePointer } from './paths.ts'

/** A JSON Schema as a check of raw answers, compiled once. Throws where it is no schema. */
export const openSchema = (schema: Record<string, unknown>): ((raw: unknown) => void) => {
  const compiled = z.fromJSONSchema(schema as never)
  return (raw) => {
    const issue = compiled.safeParse(raw).error?.issues[0]
    if (issue === undefined) return
    const pointer = issue.path.map((step) => `/${escapePointer(step as string | number)}`).join('')
    throw new Unreadable(
      pointer,
      `the answer is not as its schema says at ${pointer || 'its root'}: ${issue.message}`,
    )
  }
}
