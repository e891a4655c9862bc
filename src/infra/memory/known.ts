import { type Known, knownFields } from '../../state/memory/known.ts'
import type { Profile } from '../../state/memory/learned.ts'
import { type Database, one } from '../database/database.ts'
import { asUser, type Who } from './scope.ts'

type SummaryRow = Omit<Known['summaries'][number], 'updated_at'> & { updated_at: Date }

/** His profile, each field with where it is from, and what was written down of his sessions, the latest first. */
export const readKnown = (database: Database, who: Who): Promise<Known> => {
  const values = [who.tenant, who.user_id]
  return asUser(
    database,
    who,
    async (sql) => {
      const [user, { rows }] = await Promise.all([
        one<Profile>(sql, 'SELECT profile, learned FROM users WHERE tenant = $1 AND user_id = $2', values),
        sql.query<SummaryRow>(
          `SELECT session_id, summary, summary_turn AS turn, updated_at FROM sessions
           WHERE tenant = $1 AND user_id = $2 AND summary <> '' ORDER BY updated_at DESC, session_id`,
          values,
        ),
      ])
      return {
        profile: user ? knownFields(user) : [],
        summaries: rows.map((row) => ({ ...row, updated_at: row.updated_at.toISOString() })),
      }
    },
    { atOnce: true },
  )
}
