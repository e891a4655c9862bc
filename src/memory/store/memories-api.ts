import { type Database, queryOne } from '../../infra/database/database.ts'
import { type PageRequest, readAllPages, readPage } from '../../infra/database/pagination.ts'
import type { MemoryView, UserKnowledge } from '../../state/memory-view.ts'
import type { LearnedProfile } from '../policy/learned-profile.ts'
import { listProfileFields } from '../policy/learned-profile.ts'
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
    list: ({ user_id, ...page }: PageRequest & { user_id: string }) =>
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
    export: (user_id: string): AsyncGenerator<MemoryView> =>
      readAllPages((page) => listMemories(database, { business, user_id }, { ...page, superseded: true })),
    /** The summaries of a user's sessions. */
    summaries: (user_id: string): AsyncGenerator<UserKnowledge['summaries'][number]> =>
      readAllPages((page) => listSummaries(database, { business, user_id }, page)),
    /** The profile of a user, with the source of each field. */
    async profile(user_id: string): Promise<UserKnowledge['profile']> {
      const statement = 'SELECT profile, learned FROM users WHERE tenant = $1 AND user_id = $2'
      const user = await asUser(database, { business, user_id }, (sql) =>
        queryOne<LearnedProfile>(sql, statement, [business, user_id]),
      )
      return user ? listProfileFields(user) : []
    },
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

const listSummaries = (database: Database, owner: MemoryOwner, page: PageRequest) =>
  asUser(database, owner, (sql) => {
    const list = {
      select: 'session_id AS id, session_id, summary, summary_turn AS turn, updated_at',
      from: 'sessions',
      where: "tenant = $1 AND user_id = $2 AND summary <> ''",
      values: [owner.business, owner.user_id],
      at: 'updated_at',
      id: 'session_id',
    }
    return readPage(sql, list, page, ({ session_id, summary, turn, updated_at }: SummaryRow) => ({
      session_id,
      summary,
      turn,
      updated_at: updated_at.toISOString(),
    }))
  })
