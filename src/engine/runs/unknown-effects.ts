import { type Database, queryOne } from '../../infra/database/database.ts'
import { type PageRequest, readPage } from '../../infra/database/pagination.ts'
import { MasonError } from '../../state/errors.ts'
import type { EffectStatus, EffectView } from '../../state/operations.ts'
import { didNotOption, tookPlaceOption } from '../../state/ports/effects.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { Page } from '../../state/run-view.ts'
import { answerInput } from './input-answers.ts'

type EffectRow = Omit<EffectView, 'created_at' | 'first_sent_at'> & {
  created_at: Date
  first_sent_at: Date | null
}

const columns =
  'effect_id AS id, tenant AS business_id, run_id, class AS kind, status, sends, created_at, first_sent_at'

const toView = ({ created_at, first_sent_at, ...row }: EffectRow): EffectView => ({
  ...row,
  created_at: created_at.toISOString(),
  first_sent_at: first_sent_at?.toISOString() ?? null,
})

/** The run of an effect and its question about it, whose id is made of the call that asks. The run is locked, as by every answer. */
const questionStatement = `
  SELECT r.ended_at IS NOT NULL AS ended, i.request_id, i.answered_at IS NOT NULL AS answered
  FROM runs r LEFT JOIN input_requests i ON i.tenant = r.tenant AND i.run_id = r.run_id
    AND encode(sha256(convert_to(i.run_id || '|' || i.plan_seq || '|' || i.call_index, 'UTF8')), 'hex') = $3
  WHERE r.tenant = $1 AND r.run_id = $2 FOR NO KEY UPDATE OF r`

type QuestionRow = { ended: boolean; request_id: string | null; answered: boolean }

const settleStatement = `UPDATE effects SET status = $3, response = COALESCE($4::json, response)
  WHERE tenant = $1 AND effect_id = $2 AND status = 'unknown' RETURNING effect_id`

/** Side effects of runs of all businesses. An operator settles those whose outcome is unknown. */
export const createUnknownEffects = (database: Database) => {
  const get = async (id: string): Promise<EffectView | null> => {
    const row = await queryOne<EffectRow>(database, `SELECT ${columns} FROM effects WHERE effect_id = $1`, [
      id,
    ])
    return row && toView(row)
  }
  return {
    list: (filter: PageRequest & { status?: EffectStatus }): Promise<Page<EffectView>> =>
      readPage(
        database,
        {
          select: columns,
          from: 'effects',
          ...{ at: 'created_at', id: 'effect_id' },
          where: '$1::text IS NULL OR status = $1',
          values: [filter.status ?? null],
        },
        filter,
        toView,
      ),
    /**
     * Says whether an unknown effect took place, and answers the question of its run. With `response` the call gets that
     * as what the provider answered. Null: no such effect. `input_answered`: it was settled before.
     */
    async resolve(
      id: string,
      { took_place, response }: { took_place: boolean; response?: string },
    ): Promise<EffectView | null> {
      const effect = await get(id)
      if (!effect) return null
      const { business_id, run_id } = effect
      const settle = async (sql: Sql, status: EffectStatus): Promise<void> => {
        const stored = response === undefined ? null : JSON.stringify(response)
        if (!(await queryOne(sql, settleStatement, [business_id, id, status, stored])))
          throw createSettledError(effect)
      }
      const question = await database.asBusiness(business_id, async (sql) => {
        const row = await queryOne<QuestionRow>(sql, questionStatement, [business_id, run_id, id])
        // its run asks nothing any more: the books alone are settled
        if (row?.ended) await settle(sql, took_place ? 'succeeded' : 'failed')
        else if (effect.status !== 'unknown' || row?.answered) throw createSettledError(effect)
        return row?.ended ? null : (row?.request_id ?? throwNotAsked(effect))
      })
      if (question !== null) {
        const also = took_place && response !== undefined ? (sql: Sql) => settle(sql, 'succeeded') : undefined
        const answer = took_place ? tookPlaceOption : didNotOption
        await answerInput(database, business_id, run_id, question, answer, null, also)
      }
      return get(id)
    },
  }
}

const createSettledError = ({ id, status }: EffectView): MasonError =>
  new MasonError('input_answered', `the side effect "${id}" was settled before`, {
    remedy: `GET /admin/v1/effects has its status, which was ${status}`,
  })

const throwNotAsked = ({ run_id }: EffectView): never => {
  throw new MasonError('in_use', `run "${run_id}" is still at this side effect`, {
    remedy: 'try again once it waits for an answer, or has ended',
  })
}

/** See `createUnknownEffects`. */
export type UnknownEffects = ReturnType<typeof createUnknownEffects>
