import { z } from 'zod'
import { MasonError } from './errors.ts'

/** Names in requests and paths. */
export const aliasSchema = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[\w][\w.:/@+-]*$/, 'must be letters, digits and . _ : / @ + -, and begin with a letter or digit')

/** Text of one line, which the database and every terminal can take. */
export const createPlainTextSchema = (max: number) =>
  z
    .string()
    .trim()
    .max(max)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'has control characters or half a surrogate pair')

/** Whether a JSON value has at most so many bytes as text. */
export const isJsonWithin =
  (maxBytes: number) =>
  (value: unknown): boolean =>
    Buffer.byteLength(JSON.stringify(value)) <= maxBytes

/**
 * A name for people: 1 to 200 characters on one line.
 *
 * @example
 * ```ts
 * import { labelSchema } from 'mason-runtime/features'
 *
 * const text = labelSchema.parse('Closed on Monday')
 * ```
 */
export const labelSchema = createPlainTextSchema(200).min(1)

/** In lists: the names of the fields that are cut. The single resource has the whole. */
export const truncatedSchema = z.array(z.string()).optional()

/**
 * What every resource has beside its own fields. Times are ISO 8601 in UTC.
 *
 * @example
 * ```ts
 * import { labelSchema, toViewSchema } from 'mason-runtime/features'
 * import { z } from 'zod'
 *
 * const view = toViewSchema(z.strictObject({ text: labelSchema }).shape)
 * ```
 */
export const toViewSchema = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.strictObject({
    id: z.string(),
    ...shape,
    created_at: z.string(),
    updated_at: z.string(),
    truncated: truncatedSchema,
  })

/** The bodies that create and change a resource, and its view. */
export type ResourceSchemas = { input: z.ZodType; change: z.ZodType; view: z.ZodType }

/** What is wrong, and where: an RFC 6901 pointer into the body. */
export const fieldErrorSchema = z.strictObject({ pointer: z.string(), detail: z.string() })
/** What is wrong with one field; `pointer` is a JSON Pointer. */
export type FieldError = z.infer<typeof fieldErrorSchema>

/** `invalid_request` by fields, of which the message names the first. */
export const createFieldsError = (...errors: readonly FieldError[]): MasonError =>
  createInvalidRequest(errors)

/** The same for many fields, with a remedy. */
export const createInvalidRequest = (errors: readonly FieldError[], remedy?: string): MasonError =>
  new MasonError('invalid_request', `${errors[0]?.pointer || 'the body'}: ${errors[0]?.detail}`, {
    ...(remedy !== undefined && { remedy }),
    detail: { errors },
  })

/** So many errors of a request are named. */
export const maxFieldErrors = 1000

/** RFC 6901. Names are cut to 200 characters. */
export const toPointer = (path: readonly PropertyKey[]): string =>
  path.map((step) => `/${String(step).slice(0, 200).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

/** Whether an issue says that the whole input has another type than the schema. */
const isOfOtherType = ({ code, path }: z.core.$ZodIssue): boolean =>
  path.length === 0 && (code === 'invalid_type' || code === 'invalid_value')

/**
 * The issues of a request, at least one. Those of a union are those of its only member that has the type of the input. What zod
 * says of the length of a value of another type is left out.
 */
const resolveUnions = (issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssue[] =>
  issues.flatMap((issue, at) => {
    const before = issues[at - 1]
    if (before?.code === 'invalid_type' && before.path.join('/') === issue.path.join('/')) return []
    if (issue.code !== 'invalid_union') return [issue]
    const [member, ...others] = issue.errors.filter((inner) => !inner.some(isOfOtherType))
    if (!member || others.length > 0) return [issue]
    return resolveUnions(member.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] })))
  })

/** The errors of the first of these issues, each with a JSON pointer to its field; `describe` says what is wrong with one. */
export const mapIssues = (
  issues: readonly z.core.$ZodIssue[],
  describe: (issue: z.core.$ZodIssue) => string,
): FieldError[] =>
  resolveUnions(issues.slice(0, maxFieldErrors)).flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({ pointer: toPointer([...issue.path, key]), detail: 'unknown field' }))
      : [{ pointer: toPointer(issue.path), detail: describe(issue) }],
  )

/** The errors of a request body; of very many only the first thousand. */
export const toFieldErrors = (error: z.ZodError): FieldError[] =>
  mapIssues(error.issues, ({ message }) => message).slice(0, maxFieldErrors)

type Changed<Field, IsMerged> =
  Field extends z.ZodDefault<infer Inner>
    ? IsMerged extends true
      ? z.ZodNullable<Inner>
      : z.ZodType<z.output<Inner>, z.input<Inner> | null>
    : Field extends z.ZodOptional<infer Inner>
      ? z.ZodNullable<Inner>
      : Field
type ChangeShape<Shape extends z.ZodRawShape, Merged> = {
  [Name in keyof Shape]: z.ZodOptional<Changed<Shape[Name], Name extends Merged ? true : false>>
}

/** Null is its default. */
const toChangeField = (field: unknown, isMerged: boolean): z.ZodType => {
  if (!(field instanceof z.ZodDefault || field instanceof z.ZodOptional)) return field as z.ZodType
  const inner = field.unwrap() as z.ZodType
  if (inner instanceof z.ZodNullable) return field instanceof z.ZodOptional ? field : inner
  const value = z.nullable(inner)
  const isDefault = field instanceof z.ZodDefault && !isMerged
  const cleared = isDefault ? value.overwrite((sent) => sent ?? field.def.defaultValue) : value
  const description = field.description ?? inner.description
  return description === undefined ? cleared : cleared.describe(description)
}

/**
 * What PATCH takes: any of the fields. Absent means unchanged, so defaults do not fill in (`partial()` alone would let
 * them). Null clears: it becomes the default, and stays null where a field has none or is `merged` by member.
 *
 * @example
 * ```ts
 * import { labelSchema, toChangeSchema } from 'mason-runtime/features'
 * import { z } from 'zod'
 *
 * const change = toChangeSchema(z.strictObject({ text: labelSchema }))
 * ```
 */
export const toChangeSchema = <Shape extends z.ZodRawShape, Merged extends keyof Shape & string = never>(
  schema: z.ZodObject<Shape>,
  merged: readonly Merged[] = [],
) =>
  z.strictObject(
    Object.fromEntries(
      Object.entries(schema.shape).map(([name, field]) => {
        const isMerged = merged.some((one) => one === name)
        return [name, z.optional(toChangeField(field, isMerged))]
      }),
    ) as ChangeShape<Shape, Merged>,
  )
