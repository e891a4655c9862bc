import { z } from 'zod'
import { readJson } from './json.ts'
import type { Money, MoneyError } from './money.ts'

/** The errors of AP2, agent_authorization.md: only `unresolved_constraint` lets the agent ask the person instead. */
export type MandateErrorCode =
  | 'invalid_credential'
  | 'unresolved_constraint'
  | 'invalid_mandate'
  | 'mandates_not_supported'

/**
 * One reason why a mandate is refused. `code` is what a program distinguishes, `error` the code of the protocol, `field` the path
 * (`constraints[0].max`), `message` what is wrong and what to do.
 */
export type Violation = { code: string; error: MandateErrorCode; field: string; message: string }

/** What was received and read: the value, and the JSON text that hashes are made from. */
export type Received<Value> = { ok: true; value: Value; raw: string }
/** What reading leads to: the value, or every reason against it. */
export type ReadResult<Value> = Received<Value> | { ok: false; violations: Violation[] }

/** A violation whose message begins with its field. */
export const createViolation = (
  code: string,
  field: string,
  message: string,
  error: MandateErrorCode = 'invalid_mandate',
): Violation => ({ code, error, field, message: `${field} ${message}` })

/** A JSON text of more bytes is refused before it is parsed. */
export const maxMandateBytes = 256 * 1024
/** So many violations of one value are named. */
const maxViolations = 100

/** `constraints[0].max`. Names are cut to 200 characters. */
export const toFieldPath = (path: readonly PropertyKey[]): string =>
  path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step).slice(0, 200)}`))
    .join('')
    .replace(/^\./, '')

/** The one code of the protocol for a list of violations: what is terminal comes first. */
export const toMandateErrorCode = (violations: readonly Violation[]): MandateErrorCode | null =>
  (
    ['mandates_not_supported', 'invalid_credential', 'invalid_mandate', 'unresolved_constraint'] as const
  ).find((error) => violations.some((violation) => violation.error === error)) ?? null

type Place = { error?: MandateErrorCode; path?: readonly PropertyKey[] }

const toViolation = (issue: z.core.$ZodIssue, { error = 'invalid_mandate', path = [] }: Place): Violation => {
  const field = toFieldPath([...path, ...issue.path])
  const name = field || 'the value'
  if (issue.code === 'custom')
    return {
      code: String(issue.params?.code ?? 'invalid_field'),
      error,
      field,
      message: `${name} ${issue.message}`,
    }
  return issue.code.startsWith('invalid_') && issue.input === undefined
    ? { code: 'missing_field', error, field, message: `${name} is missing: add it` }
    : { code: 'invalid_field', error, field, message: `${name} is invalid: ${issue.message}` }
}

/** A violation for every issue of a schema, `invalid_mandate` where no other error is named, with fields below `path`. */
export const toViolations = (error: z.ZodError, place: Place = {}): Violation[] =>
  error.issues.slice(0, maxViolations).map((issue) => toViolation(issue, place))

/** The value of a schema, or all violations. */
export const parseBy = <Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  place: Place = {},
): { ok: true; value: z.output<Schema> } | { ok: false; violations: Violation[] } => {
  const parsed = safeParseWithInput(schema, value)
  return parsed.success
    ? { ok: true, value: parsed.data }
    : { ok: false, violations: toViolations(parsed.error, place) }
}

/** With the input in its issues, which are made a second time: on Node 20 zod takes 25 times as long with any option. */
export const safeParseWithInput = <Schema extends z.ZodType>(schema: Schema, value: unknown) => {
  const parsed = schema.safeParse(value)
  return parsed.success ? parsed : schema.safeParse(value, { reportInput: true })
}

const refuse = (code: string, message: string): { ok: false; violations: Violation[] } => ({
  ok: false,
  violations: [{ code, error: 'invalid_mandate', field: '', message }],
})

/** Reads a JSON text by a schema. The text stays with the value. */
export const readBy = <Schema extends z.ZodType>(
  schema: Schema,
  raw: string,
): ReadResult<z.output<Schema>> => {
  const bytes = Buffer.byteLength(raw)
  if (bytes > maxMandateBytes)
    return refuse('too_large', `the text has ${bytes} bytes: send at most ${maxMandateBytes}`)
  let json: unknown
  try {
    json = readJson(raw)
  } catch (error) {
    return refuse(
      'malformed_json',
      `the text is no JSON: correct it (${(error as Error).message.slice(0, 200)})`,
    )
  }
  const parsed = parseBy(schema, json)
  return parsed.ok ? { ...parsed, raw } : parsed
}

/** In a transform or codec: the money, or an issue at `field` that names code and remedy. */
export const toMoneyOrIssue = (
  money: Money | MoneyError,
  field: string,
  { issues, value }: z.core.ParsePayload,
): Money => {
  if (!('code' in money)) return money
  const { code, message } = money
  const path = [code === 'unknown_currency' ? 'currency' : field]
  issues.push({ code: 'custom', input: value, path, message, params: { code }, continue: false })
  return z.NEVER
}

/**
 * A list that is read entry by entry until there are too many violations to name: a list of 49,000 zeros costs what one of 100
 * does, where `z.array` would make an issue of each.
 */
export const createListSchema = <Entry extends z.ZodType>(entry: Entry, most = Infinity) =>
  z.codec(z.array(z.unknown()), z.custom<z.output<Entry>[]>(), {
    decode: (entries, { issues }) => {
      if (entries.length > most) {
        const message = `has ${entries.length} entries: send at most ${most}`
        issues.push({
          code: 'custom',
          input: entries,
          path: [],
          message,
          params: { code: 'too_many_entries' },
        })
        return z.NEVER
      }
      const values: z.output<Entry>[] = []
      for (const [i, value] of entries.entries()) {
        const read = safeParseWithInput(entry, value)
        if (read.success) values.push(read.data)
        else
          for (const issue of read.error.issues) issues.push({ ...issue, path: [i, ...issue.path] } as never)
        if (issues.length > maxViolations) break
      }
      return values
    },
    encode: (values) => values.map((value) => z.encode(entry, value)),
  })
