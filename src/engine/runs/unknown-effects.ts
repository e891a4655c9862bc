import { type Database, queryOne } from '../../infra/database/database.ts'
import { type PageRequest, readPage } from '../../infra/database/pagination.ts'
import { type Dated, toIsoTimes } from '../../infra/database/row-times.ts'
import { MasonError } from '../../state/errors.ts'
import type { EffectStatus, EffectView } from '../../state/operations.ts'
import { confirmedResponse } from '../../state/ports/effects.ts'
import { parkedStatusesSql } from '../../state/run-status.ts'
import type { Page } from '../../state/run-view.ts'

type WaitRow = { ended: boolean; waits: boolean }

const columns =
  'effect_id AS id, tenant AS business_id, run_id, class AS kind, status, sends, error, created_at, first_sent_at'

/** The run of an effect, and whether a call of it waits for an operator. The run is locked, as by whatever ends a wait. */
const waitStatement = `
  SELECT r.ended_at IS NOT NULL AS ended, EXISTS (SELECT FROM waits w
    WHERE w.tenant = $1 AND w.kind = 'effect' AND w.ref_id = $3 AND w.done_at IS NULL) AS waits
  FROM runs r WHERE r.tenant = $1 AND r.run_id = $2 FOR NO KEY UPDATE OF r`

/** One that did not take place is sent again under the same key by its run, once for each time that an operator says so. */
const settleStatement = `
  UPDATE effects SET status = $3, response = $4::json, first_sent_at = CASE WHEN $3 = 'intent' THEN NULL ELSE first_sent_at END
  WHERE tenant = $1 AND effect_id = $2 AND status = 'unknown' RETURNING effect_id`

/** Ends the wait of the call, and wakes its run where it is parked. */
const wakeStatement = `
  WITH ended AS (
    UPDATE waits w SET done_at = clock_timestamp(), outcome = '{"status":"settled"}',
      seen_at = CASE WHEN r.status IN ${parkedStatusesSql} THEN clock_timestamp() END
    FROM runs r WHERE r.tenant = w.tenant AND r.run_id = w.run_id AND w.tenant = $1 AND w.kind = 'effect' AND w.ref_id = $2
      AND w.done_at IS NULL RETURNING w.run_id
  ), run AS (
    UPDATE runs r SET status = 'queued' FROM ended
    WHERE r.tenant = $1 AND r.run_id = ended.run_id AND r.status IN ${parkedStatusesSql} RETURNING r.run_id
  ) INSERT INTO outbox (tenant, run_id) SELECT $1, run_id FROM run`

/** Side effects of runs of all businesses. An operator settles those whose outcome is unknown. */
export const createUnknownEffects = (database: Database) => {
  const get = async (id: string): Promise<EffectView | null> => {
    const row = await queryOne<Dated<EffectView>>(
      database,
      `SELECT ${columns} FROM effects WHERE effect_id = $1`,
      [id],
    )
    return row && toIsoTimes(row)
  }
  return {
    list: (filter: PageRequest & { status?: EffectStatus }): Promise<Page<EffectView>> =>
      readPage(
        database,
        {
          select: columns,
          from: 'effects',
          at: 'created_at',
          id: 'effect_id',
          where: '$1::text IS NULL OR status = $1',
          values: [filter.status ?? null],
        },
        filter,
        toIsoTimes<Dated<EffectView>>,
      ),
    /**
     * Says whether an unknown effect took place, and wakes its run: the call gets `response` as what the provider answered, or
     * sends it again where it did not take place. Null: no such effect. `input_answered`: it was settled before.
     */
    async resolve(
      id: string,
      { took_place, response = confirmedResponse }: { took_place: boolean; response?: string },
    ): Promise<EffectView | null> {
      const effect = await get(id)
      if (!effect) return null
      const { business_id, run_id } = effect
      await database.asBusiness(business_id, async (sql) => {
        const run = await queryOne<WaitRow>(sql, waitStatement, [business_id, run_id, id])
        const resent: EffectStatus = run?.ended ? 'failed' : 'intent'
        const settled = took_place ? (['succeeded', JSON.stringify(response)] as const) : [resent, null]
        const values = [business_id, id, ...settled]
        if (!(await queryOne(sql, settleStatement, values))) throw createSettledError(effect)
        if (!run?.ended && !run?.waits) throw createNotWaitingError(effect)
        await sql.query(wakeStatement, [business_id, id])
      })
      return get(id)
    },
  }
}

const createSettledError = ({ id, status }: EffectView): MasonError =>
  new MasonError('input_answered', `the side effect "${id}" was settled before`, {
    remedy: `GET /admin/v1/effects has its status, which was ${status}`,
  })

const createNotWaitingError = ({ run_id }: EffectView): MasonError =>
  new MasonError('in_use', `run "${run_id}" is still at this side effect`, {
    remedy: 'try again once it waits for an operator, or has ended',
  })

/** See `createUnknownEffects`. */
export type UnknownEffects = ReturnType<typeof createUnknownEffects>
