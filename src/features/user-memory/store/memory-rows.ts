import type { Database } from '../../../infra/database/database.ts'
import { type PageRequest, readPage } from '../../../infra/database/pagination.ts'
import { type Dated, toIsoTimes } from '../../../infra/database/row-times.ts'
import type { MemoryView } from '../../../state/memory-view.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import type { Page } from '../../../state/run-view.ts'
import { trustedColumn } from './search.ts'
import { asUser, type MemoryOwner, sendAsUser, showAllUsers } from './user-scope.ts'

const columns = `memory_id AS id, user_id, kind, content, origin, ${trustedColumn}, evidence, session_id, run_id, source_action_ids, strength, uses,
  last_used_at, superseded_by, created_at`

const toMemoryView = toIsoTimes<Dated<MemoryView>>

/** A page of a user's memories, newest first; superseded ones only with `superseded`. */
export const listMemories = (
  database: Database,
  owner: MemoryOwner,
  { superseded, ...page }: PageRequest & { superseded: boolean },
): Promise<Page<MemoryView>> =>
  sendAsUser(database, owner, (sql) => {
    const list = {
      select: columns,
      from: 'memories',
      at: 'created_at',
      id: 'memory_id',
      where: 'tenant = $1 AND user_id = $2 AND ($3::boolean OR superseded_by IS NULL)',
      values: [owner.business, owner.user_id, superseded],
    }
    return readPage(sql, list, page, toMemoryView)
  })

/** Some memories of a user, in the order of `ids`. */
export const readMemories = async (
  database: Database,
  owner: MemoryOwner,
  ids: readonly string[],
): Promise<MemoryView[]> => {
  const { rows } = await asUser(database, owner, (sql) =>
    sql.query<Dated<MemoryView>>(
      `SELECT ${columns} FROM memories WHERE tenant = $1 AND memory_id = ANY(ARRAY(SELECT json_array_elements_text($2::json)))`,
      [owner.business, JSON.stringify(ids)],
    ),
  )
  return ids.flatMap((id) => rows.filter((row) => row.id === id).map(toMemoryView))
}

/**
 * Deletes the memories whose only source is this session, and returns them; those that they superseded are true again.
 * Inside a transaction of the business that holds the user's lock, so that no other one confirms them meanwhile, and before
 * the session itself is deleted.
 */
export const forgetSessionMemories = async (
  sql: Sql,
  business: string,
  sessionId: string,
): Promise<{ id: string; content: string }[]> => {
  await showAllUsers(sql)
  const { rows } = await sql.query<{ memory_id: string; superseded_by: string | null; content: string }>(
    `WITH left_by AS (
       DELETE FROM memory_sources WHERE tenant = $1 AND session_id = $2 RETURNING memory_id
     )
     DELETE FROM memories m WHERE m.tenant = $1 AND m.memory_id IN (SELECT memory_id FROM left_by)
       AND NOT EXISTS (SELECT FROM memory_sources s WHERE s.tenant = $1 AND s.memory_id = m.memory_id AND s.session_id <> $2)
     RETURNING m.memory_id, m.superseded_by, m.content`,
    [business, sessionId],
  )
  if (rows.length === 0) return []
  const successors = new Map(rows.map(({ memory_id, superseded_by }) => [memory_id, superseded_by]))
  /** The memory that superseded a forgotten one and still exists; null: none. */
  const findHeir = (id: string): string | null => {
    let heir = successors.get(id) ?? null
    while (heir !== null && successors.has(heir)) heir = successors.get(heir) ?? null
    return heir
  }
  const heirs = [...successors.keys()].map((memory_id) => ({ memory_id, heir: findHeir(memory_id) }))
  // they have no vector until they are embedded again, but their words match at once
  await sql.query(
    `UPDATE memories m SET superseded_by = gone.heir FROM json_to_recordset($2::json) AS gone (memory_id text, heir text)
     WHERE m.tenant = $1 AND m.superseded_by = gone.memory_id`,
    [business, JSON.stringify(heirs)],
  )
  return rows.map(({ memory_id, content }) => ({ id: memory_id, content }))
}
