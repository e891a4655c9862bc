import pg from 'pg'
import { type Job, jobIn, nodesOf, partsOf } from './job.ts'
import type { Provider } from './provider.ts'

/** A connection of the harness's own, that sees all businesses as a worker does. */
export const openWitness = async (databaseUrl: string): Promise<pg.Client> => {
  const options = '-c search_path=mason,public -c role=mason_worker'
  const client = new pg.Client({ connectionString: databaseUrl, options })
  await client.connect()
  return client
}

const countOf = async (witness: pg.Client, from: string): Promise<number> =>
  Number((await witness.query<{ n: string }>(`SELECT count(*) AS n FROM ${from}`)).rows[0]?.n)

type RunRow = {
  run_id: string
  status: string
  prompt: string
  answer: string | null
  nodes: string | null
  broken: boolean
}

/** Every run with the nodes of its actions in order; `broken`: ids of a run's actions do not follow each other. */
const runsStatement = `
  DECLARE audited NO SCROLL CURSOR FOR
  SELECT r.run_id, r.status, q.request->>'prompt' AS prompt, o.result->>'answer' AS answer, a.nodes,
    COALESCE(a.first <> r.first_seq OR a.next <> r.next_seq OR a.next - a.first <> a.n, false) AS broken
  FROM runs r JOIN run_requests q USING (tenant, run_id) LEFT JOIN run_results o USING (tenant, run_id)
  LEFT JOIN LATERAL (SELECT string_agg(x.body->>'node', ' ' ORDER BY x.seq) AS nodes, min(x.seq) AS first,
    max(x.seq) + 1 AS next, count(*) AS n FROM actions x
    WHERE x.tenant = r.tenant AND x.session_id = r.session_id AND x.seq >= r.first_seq AND x.run_id = r.run_id) a ON true`

const gapsStatement = `
  SELECT session_id, count(*)::int AS n, max(seq) AS last FROM actions GROUP BY tenant, session_id
  HAVING min(seq) <> 1 OR max(seq) <> count(*) LIMIT 10`

/**
 * What the database and the provider say of the jobs that were accepted: each became one run, which did all its steps
 * once and in order and gave the right answer; each effect was asked for under one key. Gives what is wrong.
 */
export const audit = async (
  witness: pg.Client,
  accepted: ReadonlySet<string>,
  effects: Provider['effects'],
): Promise<{ runs: number; actions: number; lost: number; doubled: number; failures: string[] }> => {
  const failures: string[] = []
  const seen = new Set<string>()
  let doubled = 0
  for await (const row of runsOf(witness)) {
    const job = jobIn(row.prompt)
    const twice = seen.has(job.name)
    seen.add(job.name)
    const faults = [...faultsOf(row, job), ...effectFaults(job, effects)]
    if (twice) faults.push('its job became a second run')
    if (!accepted.has(job.name)) faults.push('no client asked for it')
    if (twice || faults.some((fault) => fault.startsWith('doubled'))) doubled++
    failures.push(...faults.map((fault) => `run ${row.run_id} of job ${job.name}: ${fault}`))
  }
  const lost = [...accepted].filter((name) => !seen.has(name))
  failures.push(...lost.map((name) => `job ${name} was accepted and is in no run`))
  const gaps = await witness.query<{ session_id: string; n: number; last: number }>(gapsStatement)
  failures.push(...gaps.rows.map((gap) => `session ${gap.session_id} has ${gap.n} actions up to ${gap.last}`))
  const rejected = await countOf(witness, 'rejected_jobs')
  if (rejected > 0) failures.push(`${rejected} queue jobs were rejected`)
  const actions = await countOf(witness, 'actions')
  return { runs: seen.size, actions, lost: lost.length, doubled, failures }
}

async function* runsOf(witness: pg.Client): AsyncGenerator<RunRow> {
  await witness.query('BEGIN')
  try {
    await witness.query(runsStatement)
    for (;;) {
      const { rows } = await witness.query<RunRow>('FETCH 2000 FROM audited')
      yield* rows
      if (rows.length === 0) return
    }
  } finally {
    await witness.query('ROLLBACK')
  }
}

const faultsOf = ({ status, answer, nodes, broken }: RunRow, { name, steps }: Job): string[] => {
  const faults: string[] = []
  const expected = nodesOf(steps).join(' ')
  if (status !== 'completed') faults.push(`it is ${status}`)
  else if (answer !== `Done: ${name}.`) faults.push(`it answered ${JSON.stringify(answer)}`)
  if (broken) faults.push('the ids of its actions do not follow each other')
  if (nodes !== expected) {
    const more = (nodes ?? '').split(' ').length > expected.split(' ').length
    faults.push(`${more ? 'doubled actions' : 'actions are missing'}: ${nodes}; expected ${expected}`)
  }
  return faults
}

const effectFaults = ({ name, steps }: Job, effects: Provider['effects']): string[] =>
  steps.flatMap((step, at) => {
    if (partsOf(step).kind !== 'write') return []
    const keys = effects.get(`${name}.${at}`)?.size ?? 0
    return keys === 1 ? [] : [`${keys === 0 ? 'missing' : 'doubled'} effect: asked for under ${keys} keys`]
  })

/** The most of what can be wrong is the same thing many times: the first of them, and how many there were. */
export const firstOf = (failures: readonly string[], limit = 15): string[] =>
  failures.length <= limit
    ? [...failures]
    : [...failures.slice(0, limit), `… and ${failures.length - limit} more`]

/** Resolves with the milliseconds it took until no run is queued or at work, or null when that did not come in time. */
export const drained = async (
  witness: pg.Client,
  withinMs: number,
  signal: AbortSignal,
): Promise<number | null> => {
  const since = performance.now()
  while (!signal.aborted) {
    const open = await countOf(witness, `runs WHERE status IN ('queued', 'running', 'input_required')`)
    const tookMs = Math.round(performance.now() - since)
    if (open === 0) return tookMs
    if (tookMs > withinMs) return null
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw signal.reason
}
