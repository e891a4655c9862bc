import type { Patch } from '../../state/patch.ts'
import type { Sql } from '../../state/ports.ts'
import type { ActionBody } from '../../state/runtime-state.ts'
import { noUsage } from '../../state/usage.ts'
import { newAttemptId } from '../ids.ts'

/** Where an action stands that no worker lays, and the epoch under which its run is ended. */
export type Laid = {
  tenant: string
  run_id: string
  session_id: string
  turn: number
  epoch: number
  seq: number
}

/** Lays an action of a run that nobody works on. Inside the transaction that ends the run. */
export const layAction = (
  sql: Sql,
  { tenant, session_id, seq, run_id, turn, epoch }: Laid,
  said: Pick<ActionBody, 'node' | 'summary' | 'result' | 'next'>,
  patch: Patch = {},
): Promise<unknown> => {
  const { node, summary, result, next } = said
  const body: ActionBody = {
    ...{ node, preparation: '', summary, result },
    ...{ context: null, relevance: 0, usage: noUsage, next },
  }
  return sql.query(
    `INSERT INTO actions (tenant, session_id, seq, run_id, turn, epoch, attempt_id, body, patch)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8::json, $9::json)`,
    [
      tenant,
      session_id,
      seq,
      run_id,
      turn,
      epoch,
      newAttemptId(),
      JSON.stringify(body),
      JSON.stringify(patch),
    ],
  )
}
