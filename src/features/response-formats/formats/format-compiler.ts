import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { ResponseReader } from '../../../models/ports/model-ports.ts'
import { UnreadableResponseError } from '../../../models/ports/unreadable-response.ts'
import { toPointer } from '../../../state/resource-schema.ts'
import { compilePaths } from './compiled-paths.ts'
import { createResultDraft, type ReadableFormat } from './result-draft.ts'

/** A check of raw responses by a JSON Schema, compiled once. Throws when the schema is invalid. */
export const compileSchema = (schema: Record<string, unknown>): ((raw: unknown) => void) => {
  const compiled = z.fromJSONSchema(schema as never)
  return (raw) => {
    const issue = compiled.safeParse(raw).error?.issues[0]
    if (issue === undefined) return
    const pointer = toPointer(issue.path)
    const message = `the response does not match its schema at ${pointer || 'its root'}: ${issue.message}`
    throw new UnreadableResponseError(pointer, message)
  }
}

/** Throws JmesPathError, or the error of the schema, for a format that `checkFormat` rejects. */
export const compileFormat = (format: ReadableFormat): ResponseReader => {
  const whole = compilePaths(format.paths)
  const events = format.stream == null ? null : compilePaths(format.stream.paths)
  const wholeFinder = isDeepStrictEqual(format.stream?.paths, format.paths) ? null : whole
  const checkSchema = format.schema == null ? () => {} : compileSchema(format.schema)
  return {
    read: (raw, usedIds = []) => {
      const draft = createResultDraft({ format, finder: whole, usedIds, checkWhole: checkSchema })
      draft.take(raw)
      return draft.end()
    },
    stream: (usedIds) =>
      events === null
        ? null
        : createResultDraft({ format, finder: events, usedIds, checkWhole: null, wholeFinder }),
  }
}
