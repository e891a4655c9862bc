import { z } from 'zod'

/** Names that stand in requests and paths. */
export const aliasSchema = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[\w][\w.:/@+-]*$/, 'must be letters, digits and . _ : / @ + -, and begin with a letter or digit')

/** Text of one line, which the database and every terminal can take. */
export const plainText = (max: number) =>
  z
    .string()
    .trim()
    .max(max)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'has control characters or half a surrogate pair')

export const labelSchema = plainText(200).min(1)

/** What every resource shows beside its own fields. Times are ISO 8601 in UTC. */
export const viewOf = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.strictObject({ id: z.string(), ...shape, created_at: z.string(), updated_at: z.string() })

/** What is wrong, and where: an RFC 6901 pointer into the body. */
export const faultSchema = z.strictObject({ pointer: z.string(), detail: z.string() })
export type Fault = z.infer<typeof faultSchema>

type Bare<Field> = Field extends z.ZodDefault<infer Inner> ? Inner : Field
type Bared<Shape extends z.ZodRawShape> = { [Name in keyof Shape]: z.ZodOptional<Bare<Shape[Name]>> }

/** What PATCH takes: any of the fields. Absent means unchanged, so defaults do not fill in (`partial()` alone would let them). */
export const changeOf = <Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>) =>
  z.strictObject(
    Object.fromEntries(
      Object.entries(schema.shape).map(([name, field]) => [
        name,
        z.optional(field instanceof z.ZodDefault ? field.unwrap() : field),
      ]),
    ) as Bared<Shape>,
  )
