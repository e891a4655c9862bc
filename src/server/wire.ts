import { type ZodType, z } from 'zod'

/** How every list answers; null when there is nothing further. */
export const pageSchema = <Item extends ZodType>(item: Item) =>
  z.strictObject({ data: z.array(item), next_cursor: z.string().nullable() })
