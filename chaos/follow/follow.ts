import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../../examples/free-port.ts'
import { type Client, createClient } from '../../src/client/create-client.ts'
import { audit, drained, firstOf, openWitness } from '../fleet/audit.ts'
import { promptOf, type Step } from '../fleet/job.ts'
import { openFleet } from '../fleet/members.ts'
import { startProvider } from '../fleet/provider.ts'
import { type Random, randomFrom } from '../fleet/random.ts'
import type { Servers } from '../fleet/servers.ts'
import type { Findings, SuiteOptions } from '../suite.ts'

const followers = 6
/** Short, so that the runs of a killed worker soon go on. */
const leaseMs = 5_000

/** Several steps, most of which are under way at any moment. */
const kinds: readonly [Step[], ...Step[][]] = [
  ['calculate', 'think~300', 'write', 'calculate'],
  ['look~400', 'calculate', 'write'],
  ['think~500', 'look~200', 'calculate', 'calculate'],
  ['write', 'think~200', 'write'],
]

/** What the iterators of the client brought, and what is wrong with that. */
type Seen = {
  accepted: Set<string>
  actions: number
  ofSessions: number
  reconnects: number
  failures: string[]
}

/** Kills the API and workers, in turn at random, under iterators of `mason-runtime/client` over runs and whole sessions. */
export const followUnderKills = async (
  servers: Pick<Servers, 'databaseUrl' | 'redisUrl'>,
  { seed, scale, say, signal }: SuiteOptions,
  settings: Record<string, string> = {},
): Promise<Findings> => {
  const kills = Math.max(3, Math.round(100 * scale))
  const random = randomFrom(seed)
  await using provider = await startProvider()
  const owned = { ...servers, [Symbol.asyncDispose]: async () => {} }
  await using fleet = openFleet(owned, provider.url, undefined, {
    MASON_LEASE_MS: String(leaseMs),
    ...settings,
  })
  const startWorker = () => fleet.startWorker({ concurrency: 8 })
  const port = await freePort()
  let api = await fleet.startApi({ port })
  const { url } = api
  const crew = await Promise.all([startWorker(), startWorker()])
  const witness = await openWitness(servers.databaseUrl)
  try {
    const seen: Seen = { accepted: new Set(), actions: 0, ofSessions: 0, reconnects: 0, failures: [] }
    const client = createClient({ url })
    const over = new AbortController()
    const work = Promise.all(
      Array.from({ length: followers }, (_, nth) =>
        followSession(client, `f${nth}`, { seen, random: random.fork(nth), over: over.signal, signal }),
      ),
    )
    let ofApi = 0
    for (let kill = 1; kill <= kills; kill++) {
      await pause(200 + random.below(800), undefined, { signal })
      if (random.below(2) === 0) {
        ofApi++
        process.kill(api.pid, 'SIGKILL')
        await api.gone
        api = await fleet.startApi({ port })
      } else {
        const [victim] = crew.splice(random.below(crew.length), 1)
        if (victim) process.kill(victim.pid, 'SIGKILL')
        crew.push(await startWorker())
      }
      if (kill % 10 === 0)
        say(`${kill} of ${kills} kills, ${seen.actions} actions, ${seen.reconnects} reconnects`)
    }
    over.abort()
    await work
    const drainedMs = await drained(witness, 60_000, signal)
    const { failures, lost, doubled, actions } = await audit(witness, seen.accepted, provider.effects)
    return {
      figures: {
        kills,
        'of these the API': ofApi,
        runs: seen.accepted.size,
        'actions committed': actions,
        'events of the iterators of runs': seen.actions,
        'events of the iterators of sessions': seen.ofSessions,
        'connections made again': seen.reconnects,
        'runs lost': lost,
        'runs doubled': doubled,
        'streams with a missing or doubled event': seen.failures.length,
      },
      failures: firstOf([
        ...seen.failures,
        ...failures,
        ...[seen.actions, seen.ofSessions]
          .filter((brought) => brought !== actions)
          .map((brought) => `${actions} actions are committed, and the iterators brought ${brought}`),
        ...(drainedMs === null ? ['runs were left unfinished after 60 s'] : []),
      ]),
    }
  } finally {
    await witness.end()
  }
}

/** One session, run after run, each followed by its own iterator, and all of them by that of the session. */
const followSession = async (
  client: Client,
  name: string,
  options: { seen: Seen; random: Random; over: AbortSignal; signal: AbortSignal },
): Promise<void> => {
  const { seen, random, over, signal } = options
  const onConnection = (state: 'lost' | 'reconnected'): void =>
    void (state === 'reconnected' && seen.reconnects++)
  const closed = new AbortController()
  const ofSession: number[] = []
  let session: Promise<void> | undefined
  let sessionId: string | undefined
  let last = 0
  for (let turn = 1; !over.aborted; turn++) {
    const job = `${name}-${turn}`
    const prompt = promptOf(job, random.pick(kinds))
    const run = await submit(
      client,
      { prompt, user_id: name, ...(sessionId && { session_id: sessionId }) },
      job,
      signal,
    )
    seen.accepted.add(job)
    sessionId = run.session_id
    session ??= (async () => {
      const source = { session_id: run.session_id }
      for await (const event of client.events(source, { signal: closed.signal, onConnection }))
        if (event.event === 'action') ofSession.push(event.id)
    })().catch((error: unknown) => {
      if (!closed.signal.aborted) seen.failures.push(`${name}: the session's stream broke: ${error}`)
    })
    const ids: number[] = []
    let ends = 0
    for await (const event of client.events({ run_id: run.id }, { signal, onConnection })) {
      if (event.event === 'action') ids.push(event.id)
      if (event.event !== 'done') continue
      ends++
      if (event.data.answer !== `Done: ${job}.`)
        seen.failures.push(`${run.id} ended with ${JSON.stringify(event.data)}`)
    }
    seen.actions += ids.length
    seen.failures.push(...findGaps(`${run.id}`, ids, last + 1))
    if (ends !== 1) seen.failures.push(`${run.id}: done came ${ends} times`)
    last = ids.at(-1) ?? last
  }
  while ((ofSession.at(-1) ?? 0) < last && !signal.aborted) await pause(50)
  closed.abort()
  await session
  seen.ofSessions += ofSession.length
  seen.failures.push(...findGaps(`session ${sessionId}`, ofSession, 1))
}

/** Every id once and in order, from `first` on. */
const findGaps = (stream: string, ids: readonly number[], first: number): string[] =>
  ids.length > 0 && ids.every((id, at) => id === first + at)
    ? []
    : [`${stream}: the iterator brought the actions ${ids.join(' ')}, and not all from ${first} on`]

/** The API may be away for longer than the client tries: the key makes it one run. */
const submit = async (
  client: Client,
  request: Parameters<Client['submit']>[0],
  idempotencyKey: string,
  signal: AbortSignal,
): ReturnType<Client['submit']> => {
  for (;;)
    try {
      return await client.submit(request, { idempotencyKey, signal })
    } catch (error) {
      if ((error as { code?: string }).code !== 'server_unreachable') throw error
    }
}
