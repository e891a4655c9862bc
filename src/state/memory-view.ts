import { z } from 'zod'
import { provenanceOrigins } from './provenance.ts'
import { memorySchema } from './runtime-state.ts'

/** A memory as the API returns it: its content, its source and its present strength. */
export const memoryViewSchema = memorySchema.omit({ relevance: true, confirmed: true }).extend({
  user_id: z.string(),
  origin: z.enum(provenanceOrigins),
  /** Whether a sentence of the user was found that asserts it. */
  trusted: z.boolean(),
  /** That sentence; null: not confirmed. */
  evidence: z.string().nullable(),
  session_id: z.string().nullable(),
  run_id: z.string().nullable(),
  strength: z.number().min(0).max(1),
  uses: z.int().nonnegative(),
  last_used_at: z.string(),
  /** The memory that replaced it. */
  superseded_by: z.string().nullable(),
  /** Only in replies to a query, from 0 to 1. */
  relevance: z.number().min(0).max(1).optional(),
})
/** See `memoryViewSchema`. */
export type MemoryView = z.infer<typeof memoryViewSchema>

/** A value that a run taught for a field, and when. */
const taughtFieldSchema = z.strictObject({
  value: z.json(),
  session_id: z.string(),
  run_id: z.string(),
  learned_at: z.string(),
})

/** A field of a user's profile and its source. */
const knownFieldSchema = z.strictObject({
  field: z.string(),
  /** Null: an admin removed it after it was learned. */
  value: z.json(),
  /** `admin`: set or changed by an admin, and so from no session. */
  origin: z.enum(['learned', 'admin']),
  session_id: z.string().nullable(),
  run_id: z.string().nullable(),
  learned_at: z.string().nullable(),
  /** What other sessions taught, newest first; for `admin` every stored value that was ever learned. */
  earlier: z.array(taughtFieldSchema),
})

/** The summary of a session, which later sessions may recall. */
const summarySchema = z.strictObject({
  session_id: z.string(),
  summary: z.string(),
  /** The last turn in the summary. */
  turn: z.int().nonnegative(),
  updated_at: z.string(),
})

/** What is known of a user in addition to their memories. */
export const userKnowledgeSchema = z.strictObject({
  profile: z.array(knownFieldSchema),
  summaries: z.array(summarySchema),
})
/** See `userKnowledgeSchema`. */
export type UserKnowledge = z.infer<typeof userKnowledgeSchema>
