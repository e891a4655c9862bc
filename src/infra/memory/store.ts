import type { MemoryView } from '../../state/memory/view.ts'
import type { Sql } from '../../state/ports.ts'
import type { Page } from '../../state/run-view.ts'
import { type Database, one } from '../database/database.ts'
import { pageOf, readCursor } from '../runs/page.ts'
import { lockUser } from './remember.ts'
import { asUser, seeAllUsers, type Who } from './scope.ts'

type Row = Omit<MemoryView, 'created_at' | 'last_used_at'> & {
  created_at: Date
  last_used_at: Date
  at: string
}

const columns = `memory_id AS id, user_id, kind, content, origin, trusted, session_id, run_id, source_action_ids, strength, uses,
  last_used_at, superseded_by, created_at, created_at::text AS at`

const viewOf = ({ at: _, ...row }: Row): MemoryView => ({
  ...row,
  last_used_at: row.last_used_at.toISOString(),
  created_at: row.created_at.toISOString(),
})

/** What is remembered of a user, the latest first; what is no longer true only with `superseded`. */
export const listMemories = (
  database: Database,
  who: Who,
  filter: { limit: number; cursor?: string; superseded: boolean },
): Promise<Page<MemoryView>> => {
  const after = readCursor(filter.cursor)
  return asUser(
    database,
    who,
    async (sql) => {
      const { rows } = await sql.query<Row>(
        `SELECT ${columns} FROM memories WHERE tenant = $1 AND user_id = $2 AND ($6::boolean OR superseded_by IS NULL)
           AND ($3::text IS NULL OR (created_at, memory_id) < ($3::timestamptz, $4))
         ORDER BY created_at DESC, memory_id DESC LIMIT $5`,
        [who.tenant, who.user_id, after?.at ?? null, after?.id ?? null, filter.limit + 1, filter.superseded],
      )
      return pageOf(rows, filter.limit, viewOf)
    },
    { atOnce: true },
  )
}

/** The views of some memories of a user, in the order of their ids. */
export const readMemories = async (
  database: Database,
  who: Who,
  ids: readonly string[],
): Promise<MemoryView[]> => {
  const { rows } = await asUser(database, who, (sql) =>
    sql.query<Row>(
      `SELECT ${columns} FROM memories WHERE tenant = $1 AND memory_id IN (SELECT json_array_elements_text($2::json))`,
      [who.tenant, JSON.stringify(ids)],
    ),
  )
  return ids.flatMap((id) => rows.filter((row) => row.id === id).map(viewOf))
}

/**
 * Forgets what came from this session alone; what these memories had taken the place of is true again. Inside a
 * transaction of the business, before the session itself is deleted. Gives what was forgotten.
 */
export const forgetSession = async (
  sql: Sql,
  tenant: string,
  sessionId: string,
): Promise<{ id: string; content: string }[]> => {
  await seeAllUsers(sql)
  // nobody confirms meanwhile what is forgotten here
  const owner = await one<{ user_id: string }>(
    sql,
    'SELECT user_id FROM sessions WHERE tenant = $1 AND session_id = $2',
    [tenant, sessionId],
  )
  if (owner) await lockUser(sql, { tenant, ...owner })
  const { rows } = await sql.query<{ memory_id: string; superseded_by: string | null; content: string }>(
    `WITH left_by AS (
       DELETE FROM memory_sources WHERE tenant = $1 AND session_id = $2 RETURNING memory_id
     )
     DELETE FROM memories m WHERE m.tenant = $1 AND m.memory_id IN (SELECT memory_id FROM left_by)
       AND NOT EXISTS (SELECT FROM memory_sources s WHERE s.tenant = $1 AND s.memory_id = m.memory_id AND s.session_id <> $2)
     RETURNING m.memory_id, m.superseded_by, m.content`,
    [tenant, sessionId],
  )
  if (rows.length === 0) return []
  const next = new Map(rows.map(({ memory_id, superseded_by }) => [memory_id, superseded_by]))
  /** What has taken the place of a forgotten memory and is still there; null: nothing. */
  const heirOf = (id: string): string | null => {
    let heir = next.get(id) ?? null
    while (heir !== null && next.has(heir)) heir = next.get(heir) ?? null
    return heir
  }
  const heirs = [...next.keys()].map((memory_id) => ({ memory_id, heir: heirOf(memory_id) }))
  // without a vector until it is embedded again, but its words find it at once
  await sql.query(
    `UPDATE memories m SET superseded_by = gone.heir FROM json_to_recordset($2::json) AS gone (memory_id text, heir text)
     WHERE m.tenant = $1 AND m.superseded_by = gone.memory_id`,
    [tenant, JSON.stringify(heirs)],
  )
  return rows.map(({ memory_id, content }) => ({ id: memory_id, content }))
}
