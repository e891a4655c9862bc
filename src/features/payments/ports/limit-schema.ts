import { z } from 'zod'

/** One limit of an open mandate in plain words. */
export const limitSchema = z.strictObject({ name: z.string(), text: z.string() })
