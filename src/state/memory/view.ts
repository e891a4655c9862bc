import { z } from 'zod'
import { origins } from '../context/fence.ts'
import { memorySchema } from '../runtime-state.ts'

/** A memory as it is listed: what it says, where it came from, how strong it still is. */
export const memoryViewSchema = memorySchema.omit({ relevance: true }).extend({
  user_id: z.string(),
  origin: z.enum(origins),
  /** Whether the user himself said so. */
  trusted: z.boolean(),
  session_id: z.string().nullable(),
  run_id: z.string().nullable(),
  strength: z.number().min(0).max(1),
  uses: z.int().nonnegative(),
  last_used_at: z.string(),
  /** The memory that took its place. */
  superseded_by: z.string().nullable(),
  /** Only in answers to a query, from 0 to 1. */
  relevance: z.number().min(0).max(1).optional(),
})
export type MemoryView = z.infer<typeof memoryViewSchema>
