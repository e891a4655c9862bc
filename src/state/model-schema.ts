import { z } from 'zod'

/** Bounds of texts and lists that a model does not reach by itself; beyond them its call is refused with the reason. */
const longText = 100
const longList = 100

/**
 * The JSON Schema of a tool's arguments or of a reply, as models get it: without `$schema`, without bounds that only mean
 * "safe integer", "not empty" or "not endless".
 */
export const toModelSchema = (schema: z.ZodType, io: 'input' | 'output'): Record<string, unknown> => {
  const { $schema: _, ...tidied } = z.toJSONSchema(schema, {
    io,
    override: ({ jsonSchema: one }) => {
      if (one.minimum === Number.MIN_SAFE_INTEGER) delete one.minimum
      if (one.maximum === Number.MAX_SAFE_INTEGER) delete one.maximum
      // a reply must not be empty, an argument hardly ever is
      if (io === 'input' && one.minLength === 1) delete one.minLength
      if (io === 'input' && one.minItems === 1) delete one.minItems
      if ((one.maxLength ?? 0) >= longText) delete one.maxLength
      // a field that does not exist is refused by its name; in replies vendors want this said
      if (io === 'input' && one.additionalProperties === false) delete one.additionalProperties
      if ((one.maxItems ?? 0) >= longList) delete one.maxItems
    },
  })
  return tidied
}
