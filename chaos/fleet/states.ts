import type pg from 'pg'
import type { RuntimeState } from '../../src/state/runtime-state.ts'
import { checkInvariants } from '../../test/support/invariants.ts'
import type { HttpClient } from './http-client.ts'

/** Checks the invariants of the states of so many sessions, the longest ones first; gives what is wrong. */
export const checkStates = async (http: HttpClient, witness: pg.Client, most: number): Promise<string[]> => {
  const { rows } = await witness.query<{ run_id: string }>(
    `SELECT r.run_id FROM sessions s JOIN runs r ON r.tenant = s.tenant AND r.session_id = s.session_id AND r.turn = s.turns
     WHERE r.status = 'completed' ORDER BY s.turns DESC, s.session_id LIMIT $1`,
    [most],
  )
  const failures: string[] = []
  for (const { run_id } of rows) {
    const { status, body } = await http.get(`/v1/runs/${run_id}/state`)
    try {
      if (status !== 200) throw new Error(`its state was answered with ${status}`)
      checkInvariants(body as RuntimeState)
    } catch (error) {
      failures.push(`the state of run ${run_id}: ${String(error).slice(0, 400)}`)
    }
  }
  return failures
}
