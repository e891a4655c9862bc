import type { ForgetOfBusiness } from '../../../accounts/businesses.ts'
import { clearSessionSummaries } from '../../../engine/sessions/summaries.ts'
import { type Database, queryOne } from '../../../infra/database/database.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import { type ForgottenMemory, isTaughtByMemory } from '../policy/learned-profile.ts'
import { discardUserDistillations } from './distillation-queue.ts'
import { unlearnProfile } from './learn-profile.ts'
import { lockUser } from './remember.ts'
import { clearLeakingTexts } from './session-summaries.ts'
import { deleteTurns } from './turns.ts'
import { asUser, everyUser, type MemoryOwner } from './user-scope.ts'

/**
 * Deletes a memory for good, with those it superseded, the profile fields that say the same, what the user's runs so far were
 * about to teach, and the summaries that repeat it. False: the business has no memory of this id.
 */
export const forgetMemory = (database: Database, business: string, id: string): Promise<boolean> =>
  asUser(database, { business, user_id: everyUser }, async (sql) => {
    const statement = 'SELECT user_id FROM memories WHERE tenant = $1 AND memory_id = $2'
    const row = await queryOne<{ user_id: string }>(sql, statement, [business, id])
    if (!row) return false
    const owner = { business, ...row }
    await lockUser(sql, owner)
    const memories = await deleteMemory(sql, owner, id)
    if (memories.length === 0) return false
    await discardUserDistillations(sql, owner)
    const profileValues = await unlearnProfile(sql, owner, (taught, field) =>
      memories.some((memory) => isTaughtByMemory(memory, taught, field)),
    )
    const taughtBy = memories.flatMap(({ run_ids }) => run_ids)
    await clearLeakingTexts(sql, owner, { memories, profileValues, taughtBy })
    return true
  })

/** Deletes a memory and all that it superseded, also through others; returns them. */
const deleteMemory = async (
  sql: Sql,
  { business }: MemoryOwner,
  id: string,
): Promise<(ForgottenMemory & { id: string })[]> => {
  const { rows } = await sql.query<ForgottenMemory & { id: string }>(
    `WITH RECURSIVE gone AS (
       SELECT memory_id FROM memories WHERE tenant = $1 AND memory_id = $2
       UNION SELECT m.memory_id FROM memories m JOIN gone ON m.superseded_by = gone.memory_id WHERE m.tenant = $1
     ), deleted AS (
       DELETE FROM memories WHERE tenant = $1 AND memory_id IN (SELECT memory_id FROM gone)
       RETURNING memory_id, content, subject
     ) SELECT d.memory_id AS id, d.content, d.subject, ARRAY(SELECT s.run_id FROM memory_sources s
         WHERE s.tenant = $1 AND s.memory_id = d.memory_id) AS run_ids FROM deleted d`,
    [business, id],
  )
  return rows
}

/**
 * Deletes what a business no longer learns and recalls: pending distillations, locked in the order that every deletion uses, so
 * that a process that learns just now finds its claim deleted and writes nothing; and the turns that are stored.
 */
export const forgetOfBusiness: ForgetOfBusiness = async (sql, id, { learning, recall }) => {
  if (learning === false)
    await sql.query(
      `DELETE FROM distillations WHERE tenant = $1 AND run_id IN (
         SELECT run_id FROM distillations WHERE tenant = $1 AND failed_at IS NULL ORDER BY run_id FOR UPDATE)`,
      [id],
    )
  if (recall === false) await sql.query('DELETE FROM turns WHERE tenant = $1', [id])
}

/**
 * Deletes all that was remembered and learned of a user, the summaries of their sessions, and what their runs so far were
 * about to teach. The sessions themselves, and profile fields that an admin set, stay. Safe to repeat.
 */
export const forgetUser = (database: Database, owner: MemoryOwner): Promise<void> =>
  asUser(database, owner, async (sql) => {
    await lockUser(sql, owner)
    await discardUserDistillations(sql, owner)
    await sql.query('DELETE FROM memories WHERE tenant = $1 AND user_id = $2', [
      owner.business,
      owner.user_id,
    ])
    await unlearnProfile(sql, owner, () => true)
    await clearSessionSummaries(sql, owner.business, owner.user_id, null)
    await deleteTurns(sql, owner, null)
  })
