import { type Database, queryOne } from '../../infra/database/database.ts'
import type { LearnedProfile } from '../policy/learned-profile.ts'
import { listProfileFields, type MemoryView, type UserKnowledge } from '../policy/memory-view.ts'
import { forgetMemory, forgetUser } from './forget.ts'
import { listMemories, readMemories } from './memory-rows.ts'
import { type MemoryServices, searchMemories } from './search.ts'
import { asUser, type MemoryOwner } from './user-scope.ts'

/** The memories of a business's users, for its API. */
export type MemoriesApi = ReturnType<typeof createMemoriesApi>

/** See `MemoriesApi`. */
export const createMemoriesApi = (parts: MemoryServices, business: string) => {
  const { database } = parts
  return {
    /** Newest first. */
    list: ({ user_id, ...page }: { user_id: string; limit: number; cursor?: string }) =>
      listMemories(database, { business, user_id }, { ...page, superseded: false }),
    /** Memories related to a text, the best first, with their relevance. */
    async search(
      { user_id, query, limit }: { user_id: string; query: string; limit: number },
      signal: AbortSignal,
    ): Promise<MemoryView[]> {
      const owner = { business, user_id }
      const caller = { business_id: business, user_id, run_id: null }
      const hits = await searchMemories(parts, owner, caller, { text: query, limit }, signal)
      const relevance = new Map(hits.map((hit) => [hit.id, Math.round(hit.relevance * 1000) / 1000]))
      const views = await readMemories(database, owner, [...relevance.keys()])
      return views.map((view) => ({ ...view, relevance: relevance.get(view.id) ?? 0 }))
    },
    /** All memories of a user, superseded ones included. */
    async export(user_id: string): Promise<MemoryView[]> {
      const all = { limit: 2 ** 32, superseded: true }
      return (await listMemories(database, { business, user_id }, all)).data
    },
    /** What else is known of a user: the profile with the source of each field, and the summaries of their sessions. */
    known: (user_id: string) => readUserKnowledge(database, { business, user_id }),
    /**
     * Deletes a memory for good, with those it superseded, the profile fields that say the same, the summaries that repeat
     * it, and what the user's runs so far were about to teach. False: no memory has this id.
     */
    forget: (id: string) => forgetMemory(database, business, id),
    /** Deletes all of a user, learned fields, summaries and pending lessons included. Safe to repeat. */
    forgetAll: (user_id: string) => forgetUser(database, { business, user_id }),
  }
}

type SummaryRow = Omit<UserKnowledge['summaries'][number], 'updated_at'> & { updated_at: Date }

const readUserKnowledge = (database: Database, owner: MemoryOwner): Promise<UserKnowledge> => {
  const values = [owner.business, owner.user_id]
  return asUser(
    database,
    owner,
    async (sql) => {
      const [user, { rows }] = await Promise.all([
        queryOne<LearnedProfile>(
          sql,
          'SELECT profile, learned FROM users WHERE tenant = $1 AND user_id = $2',
          values,
        ),
        sql.query<SummaryRow>(
          `SELECT session_id, summary, summary_turn AS turn, updated_at FROM sessions
           WHERE tenant = $1 AND user_id = $2 AND summary <> '' ORDER BY updated_at DESC, session_id`,
          values,
        ),
      ])
      return {
        profile: user ? listProfileFields(user) : [],
        summaries: rows.map((row) => ({ ...row, updated_at: row.updated_at.toISOString() })),
      }
    },
    { pipelined: true },
  )
}
