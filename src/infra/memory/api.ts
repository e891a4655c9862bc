import type { Known } from '../../state/memory/known.ts'
import type { MemoryView } from '../../state/memory/view.ts'
import type { Page } from '../../state/run-view.ts'
import type { Database } from '../database/database.ts'
import { forgetMemory, forgetUser } from './forget.ts'
import { readKnown } from './known.ts'
import { type Parts, searchMemories } from './search.ts'
import { listMemories, readMemories } from './store.ts'

/** What a business may do with what is remembered of its users. */
export type MemoriesApi = {
  /** The latest first. */
  list(filter: { user_id: string; limit: number; cursor?: string }): Promise<Page<MemoryView>>
  /** What has to do with a text, the best first, with its relevance. */
  search(
    search: { user_id: string; query: string; limit: number },
    signal: AbortSignal,
  ): Promise<MemoryView[]>
  /** All of a user, with what is no longer true. */
  export(userId: string): Promise<MemoryView[]>
  /** What is known of him beside that: his profile, with where each field is from, and what was written down of his sessions. */
  known(userId: string): Promise<Known>
  /**
   * For good, with what it had taken the place of, the fields of the profile that say the same, the summaries that tell it,
   * and what the user's runs so far were about to teach. False: there is none of this id.
   */
  forget(id: string): Promise<boolean>
  /** All of a user, also learned fields, summaries of sessions and what was about to be learned. Safe to call twice. */
  forgetAll(userId: string): Promise<void>
}

const exportedAtOnce = 1000

export const createMemoriesApi = (parts: Parts & { database: Database }, tenant: string): MemoriesApi => {
  const { database } = parts
  return {
    list: ({ user_id, ...filter }) =>
      listMemories(database, { tenant, user_id }, { ...filter, superseded: false }),
    async search({ user_id, query, limit }, signal) {
      const who = { tenant, user_id }
      const caller = { business_id: tenant, user_id, run_id: null }
      const hits = await searchMemories(parts, who, caller, { text: query, limit }, signal)
      const relevance = new Map(hits.map((hit) => [hit.id, Math.round(hit.relevance * 1000) / 1000]))
      const views = await readMemories(database, who, [...relevance.keys()])
      return views.map((view) => ({ ...view, relevance: relevance.get(view.id) ?? 0 }))
    },
    async export(user_id) {
      const all: MemoryView[] = []
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page: Page<MemoryView> = await listMemories(
          database,
          { tenant, user_id },
          { limit: exportedAtOnce, superseded: true, ...(cursor !== undefined && { cursor }) },
        )
        all.push(...page.data)
        cursor = page.next_cursor
      }
      return all
    },
    known: (user_id) => readKnown(database, { tenant, user_id }),
    forget: (id) => forgetMemory(database, tenant, id),
    forgetAll: (user_id) => forgetUser(database, { tenant, user_id }),
  }
}
