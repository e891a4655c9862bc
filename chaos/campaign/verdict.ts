import { type ActionRow, applyAction, foldActions } from '../../src/state/fold.ts'
import { emptyState, type RuntimeState } from '../../src/state/runtime-state.ts'
import type { Accepted, ClientRecord } from './clients.ts'
import { digestOf } from './digest.ts'
import { checkEffects, type EffectRow } from './judge-effects.ts'
import { checkRun, checkState, type RunRow } from './judge-runs.ts'
import { type LedgerEntry, readLedger } from './ledger.ts'
import type { Witness } from './witness.ts'
import type { Held } from './world.ts'

export type Finding = { about: string; what: string }

export type Verdict = {
  faults: Finding[]
  counts: {
    runs: number
    actions: number
    effects: number
    people: number
    compared: number
    statuses: string
  }
}

type SessionRow = ActionRow & { session_id: string; run_id: string }

const sessionsAtOnce = 200

/** What the database and the ledger say of everything that was promised. No fault: nothing was lost and nothing doubled. */
export const judge = async (
  witness: Witness,
  ledgerFile: string,
  record: ClientRecord,
  held: readonly Held[],
  { rejected } = { rejected: 0 },
): Promise<Verdict> => {
  const faults: Finding[] = record.faults.map((what) => ({ about: 'a client', what }))
  const ledger = readLedger(ledgerFile)
  const runs = await witness.query<RunRow>(
    `SELECT r.run_id, r.session_id, r.turn, r.status, r.finish_reason, r.first_seq, r.next_seq, o.result FROM runs r
     LEFT JOIN run_results o USING (tenant, run_id) ORDER BY r.session_id, r.turn`,
  )
  const effects = await witness.query<EffectRow>(
    `SELECT run_id, effect_id, class, status, sends, convert_from(request, 'UTF8') AS request FROM effects`,
  )
  const accepted = new Map([...record.accepted.values()].map((one) => [one.run_id, one]))
  const blame = (about: string, what: readonly string[]): void =>
    void faults.push(...what.map((one) => ({ about, what: one })))

  const known = new Set(runs.map(({ run_id }) => run_id))
  for (const { run_id, job } of accepted.values())
    if (!known.has(run_id)) blame(run_id, [`lost: job ${job.name} was accepted and is not there`])
  for (const { run_id } of runs)
    if (!accepted.has(run_id)) blame(run_id, ['doubled: no client knows of this run'])

  let actions = 0
  let compared = 0
  const heldBySession = groupBy(held, ({ session_id }) => session_id)
  const effectsByRun = groupBy(effects, ({ run_id }) => run_id)
  for (const sessions of chunksOf(
    groupBy(runs, ({ session_id }) => session_id),
    sessionsAtOnce,
  )) {
    const rows = groupBy(
      await witness.query<SessionRow>(
        `SELECT session_id, run_id, seq, turn, body, patch FROM actions WHERE session_id = ANY($1) ORDER BY session_id, seq`,
        [sessions.map(([id]) => id)],
      ),
      ({ session_id }) => session_id,
    )
    for (const [session, itsRuns] of sessions) {
      const itsRows = rows.get(session) ?? []
      actions += itsRows.length
      blame(session, idFaults(itsRows))
      const itsHeld = heldBySession.get(session) ?? []
      compared += itsHeld.length
      blame(session, heldFaults(itsRows, itsHeld))
      const state = foldActions(itsRows)
      blame(session, checkState(state))
      for (const run of itsRuns) {
        const promised = accepted.get(run.run_id)
        const itsActions = turnOf(state, run.turn)
        blame(run.run_id, checkRun(run, itsRows, promised))
        if (promised)
          blame(run.run_id, checkEffects(promised, itsActions, effectsByRun.get(run.run_id) ?? [], ledger))
      }
    }
  }
  blame('the ledger', strangeDeeds(ledger, accepted))
  blame('the database', await leftOvers(witness, rejected))
  const statuses = groupBy(runs, ({ status }) => status)
  return {
    faults,
    counts: {
      runs: runs.length,
      actions,
      effects: effects.length,
      people: Number((await witness.query<{ n: string }>('SELECT count(*) AS n FROM input_requests'))[0]?.n),
      compared,
      statuses: [...statuses]
        .map(([status, all]) => `${all.length} ${status}`)
        .sort()
        .join(', '),
    },
  }
}

const turnOf = (state: RuntimeState, turn: number) => state.action_history[turn - 1] ?? []

/** Ids of a session are 1, 2, 3 … over all its turns. */
const idFaults = (rows: readonly SessionRow[]): string[] =>
  rows.some(({ seq }, at) => seq !== at + 1)
    ? [`the ids have a gap or a repeat: ${rows.map(({ seq }) => seq).join(' ')}`]
    : []

/** Every state that a worker held when it let go is the one that its rows give up to there. */
const heldFaults = (rows: readonly SessionRow[], held: readonly Held[]): string[] => {
  const wanted = groupBy(held, ({ last }) => String(last))
  const faults: string[] = []
  let state: RuntimeState = emptyState
  for (const row of rows) {
    state = applyAction(state, row)
    const those = wanted.get(String(row.seq))
    wanted.delete(String(row.seq))
    if (!those) continue
    const digest = digestOf(state)
    for (const one of those)
      if (one.digest !== digest)
        faults.push(
          `run ${one.run_id}: the state held at action ${row.seq} is not the one re-read (${one.left})`,
        )
  }
  wanted.delete('0')
  for (const last of wanted.keys()) faults.push(`a worker held an action ${last} that is not in the database`)
  return faults
}

const strangeDeeds = (ledger: Map<string, LedgerEntry[]>, accepted: Map<string, Accepted>): string[] => {
  const names = new Set([...accepted.values()].map(({ job }) => job.name))
  return [...ledger.keys()]
    .filter((item) => !names.has(item.split('.')[0] ?? ''))
    .map((item) => `it was asked for ${item}, which is of no accepted job`)
}

/** Nothing is left to be done: no wake-up, no lease, no open question. */
const leftOvers = async (witness: Witness, rejected: number): Promise<string[]> => {
  const [row] = await witness.query<Record<string, string>>(
    `SELECT (SELECT count(*) FROM runs WHERE lease_owner IS NOT NULL OR status IN ('queued', 'running', 'input_required')) AS "unfinished runs",
       (SELECT count(*) FROM outbox) AS "wake-ups in the outbox",
       (SELECT count(*) FROM input_requests WHERE answered_at IS NULL) AS "open questions",
       (SELECT count(*) FROM rejected_jobs) - $1::int AS "rejected jobs"`,
    [rejected],
  )
  return Object.entries(row ?? {})
    .filter(([, count]) => Number(count) !== 0)
    .map(([what, count]) => `${count} ${what} are left`)
}

const groupBy = <Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> => {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group) group.push(item)
    else groups.set(key, [item])
  }
  return groups
}

const chunksOf = <Value>(groups: Map<string, Value>, size: number): [string, Value][][] => {
  const all = [...groups]
  return Array.from({ length: Math.ceil(all.length / size) }, (_, nth) =>
    all.slice(nth * size, (nth + 1) * size),
  )
}
