import type { MemoriesApi } from '../../../engine/sessions/user-memory.ts'
import { type Database, queryOne } from '../../../infra/database/database.ts'
import { type PageRequest, readAllPages, readPage } from '../../../infra/database/pagination.ts'
import { type Dated, toIsoTimes } from '../../../infra/database/row-times.ts'
import type { UserKnowledge } from '../../../state/memory-view.ts'
import { type LearnedProfile, listProfileFields } from '../policy/learned-profile.ts'
import { forgetMemory, forgetUser } from './forget.ts'
import { listMemories, readMemories } from './memory-rows.ts'
import { type MemoryServices, searchMemories } from './search.ts'
import { asUser, type MemoryOwner } from './user-scope.ts'

/** See `MemoriesApi`. */
export const createMemoriesApi = (parts: MemoryServices, business: string): MemoriesApi => {
  const { database } = parts
  return {
    list: ({ user_id, ...page }) =>
      listMemories(database, { business, user_id }, { ...page, superseded: false }),
    async search({ user_id, query, limit }, signal) {
      const owner = { business, user_id }
      const caller = { business_id: business, user_id, run_id: null }
      const hits = await searchMemories(parts, owner, caller, { text: query, limit }, signal)
      const relevance = new Map(hits.map((hit) => [hit.id, Math.round(hit.relevance * 1000) / 1000]))
      const views = await readMemories(database, owner, [...relevance.keys()])
      return views.map((view) => ({ ...view, relevance: relevance.get(view.id) ?? 0 }))
    },
    export: (user_id) =>
      readAllPages((page) => listMemories(database, { business, user_id }, { ...page, superseded: true })),
    summaries: (user_id) => readAllPages((page) => listSummaries(database, { business, user_id }, page)),
    async profile(user_id) {
      const statement = 'SELECT profile, learned FROM users WHERE tenant = $1 AND user_id = $2'
      const user = await asUser(database, { business, user_id }, (sql) =>
        queryOne<LearnedProfile>(sql, statement, [business, user_id]),
      )
      return user ? listProfileFields(user) : []
    },
    forget: (id) => forgetMemory(database, business, id),
    forgetAll: (user_id) => forgetUser(database, { business, user_id }),
  }
}

type SummaryRow = Dated<UserKnowledge['summaries'][number]> & { id: string }

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
    return readPage(sql, list, page, ({ id: _, ...row }: SummaryRow) => toIsoTimes(row))
  })
