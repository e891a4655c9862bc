import { execFile } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Queue } from 'bullmq'
import { ClientError, isTransient } from '../../src/client/client-error.ts'
import { createClient } from '../../src/client/create-client.ts'
import { newRunId } from '../../src/infra/lib/ids.ts'
import { TcpProxy } from '../failures/tcp-proxy.ts'
import { drained, firstOf, openWitness } from '../fleet/audit.ts'
import { promptOf } from '../fleet/job.ts'
import { openFleet } from '../fleet/members.ts'
import { startProvider } from '../fleet/provider.ts'
import { type Random, randomFrom } from '../fleet/random.ts'
import type { Servers } from '../fleet/servers.ts'
import type { Findings, SuiteOptions } from '../suite.ts'

/** What a proxy of a business knows of a job in the end. */
type Known = { name: string; run_id?: string; status?: string; errors?: { pointer: string }[] | null }
type Load = { count: number; refused: number; signal: AbortSignal }

const lanes = 64
/** A job that no schema takes; every proxy must learn why. */
const wrongLimits = { limits: { max_steps: -1 } }
const wrongPointer = '/limits/max_steps'

/**
 * Proxies of a business in TypeScript (the client), Python (HTTP) and plain BullMQ submit through connections that are cut,
 * delayed and lose answers, so that requests arrive twice.
 */
export const submitThroughFaults = async (
  servers: Servers,
  { seed, scale, say, signal }: SuiteOptions,
): Promise<Findings> => {
  const load: Load = {
    count: Math.max(10, Math.round(1000 * scale)),
    refused: Math.max(2, Math.round(50 * scale)),
    signal,
  }
  const random = randomFrom(seed)
  await using provider = await startProvider()
  await using fleet = openFleet(servers, provider.url)
  const api = await fleet.startApi()
  await Promise.all([fleet.startWorker({ concurrency: 32 }), fleet.startWorker({ concurrency: 32 })])
  const witness = await openWitness(servers.databaseUrl)
  const http = new TcpProxy(api.url)
  const redis = new TcpProxy(servers.redisUrl)
  await Promise.all([http.open(), redis.open()])
  const over = new AbortController()
  const broken = Promise.all(
    [http, redis].map((proxy, nth) => breakConnections(proxy, random.fork(nth), over.signal)),
  )
  try {
    const started = performance.now()
    const finish = async (name: string, known: Promise<Known[]>): Promise<[string, Known[]]> => {
      const all = await known
      say(`${name}: ${all.length} jobs after ${Math.round((performance.now() - started) / 1000)} s`)
      return [name, all]
    }
    const found = await Promise.all([
      finish('ts', submitByClient(http.url, load)),
      finish('py', submitByPython(http.url, load)),
      finish('mq', submitByBullMQ(redis.url, http.url, load)),
    ])
    over.abort()
    const faults = (await broken).reduce((sum, each) => sum + each, 0)
    await drained(witness, 60_000, signal)
    const { rows } = await witness.query<{ user_id: string; run_id: string; status: string }>(
      'SELECT user_id, run_id, status FROM runs JOIN sessions USING (tenant, session_id)',
    )
    const failures = found.flatMap(([name, known]) =>
      compare(
        name,
        known,
        rows.filter(({ user_id }) => user_id === name),
        load,
      ),
    )
    return {
      figures: {
        'jobs of each proxy': load.count,
        'jobs of each to refuse': load.refused,
        ...Object.fromEntries(
          found.map(([name]) => [`runs of ${name}`, rows.filter((row) => row.user_id === name).length]),
        ),
        'faults of the connections': faults,
        'answers lost': http.lost + redis.lost,
        seconds: Math.round((performance.now() - started) / 1000),
      },
      failures: firstOf(failures),
    }
  } finally {
    over.abort()
    await Promise.all([http.down(), redis.down(), witness.end()])
  }
}

/** One fault after the other until the signal aborts; gives how many. */
const breakConnections = async (proxy: TcpProxy, random: Random, signal: AbortSignal): Promise<number> => {
  const faults = [
    () => proxy.cut(),
    () => proxy.loseAnswers(3, /POST|EVAL/i),
    async () => {
      proxy.delayMs = 20 + random.below(80)
      await pause(500)
      proxy.delayMs = 0
    },
    async () => {
      proxy.freeze()
      await pause(random.below(400))
      proxy.thaw()
    },
  ] as const
  for (let count = 0; ; count++) {
    await pause(400 + random.below(800), undefined, { signal }).catch(() => {})
    if (signal.aborted) return count
    await random.pick(faults)()
  }
}

/** All jobs, in so many lanes at once. */
const submitAll = async (
  { count, refused, signal }: Load,
  one: (at: number, wrong: object) => Promise<Known>,
): Promise<Known[]> => {
  const known: Known[] = []
  let next = 0
  const lane = async (): Promise<void> => {
    for (let at = next++; at < count + refused; at = next++) {
      signal.throwIfAborted()
      known.push(await one(at, at < count ? {} : wrongLimits))
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return known
}

/** Until it succeeds or is refused. */
const persist = async <Value>(work: () => Promise<Value>): Promise<Value> => {
  for (;;)
    try {
      return await work()
    } catch (error) {
      if (error instanceof ClientError && !isTransient(error)) throw error
      await pause(100)
    }
}

const submitByClient = (url: string, load: Load): Promise<Known[]> => {
  const client = createClient({ url })
  return submitAll(load, async (at, wrong) => {
    const name = `ts-${at}`
    const request = { prompt: promptOf(name, []), user_id: 'ts', ...wrong }
    try {
      const { id } = await persist(() => client.submit(request, { idempotencyKey: name }))
      const { status } = await persist(() => client.wait(id))
      return { name, run_id: id, status }
    } catch (error) {
      return { name, errors: error instanceof ClientError ? (error.problem?.errors ?? null) : null }
    }
  })
}

const submitByPython = async (url: string, { count, refused, signal }: Load): Promise<Known[]> => {
  const script = fileURLToPath(new URL('./http-proxy.py', import.meta.url))
  const args = [script, url.replace(/\/$/, ''), String(count), String(refused)]
  const { stdout } = await promisify(execFile)('python3', args, { signal, maxBuffer: 64 * 1024 * 1024 })
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Known)
}

/** Plain BullMQ: the producer chooses `run_id`, and reads the run under it; what is refused is a failed job. */
const submitByBullMQ = async (redisUrl: string, url: string, load: Load): Promise<Known[]> => {
  const connection = { url: redisUrl, maxRetriesPerRequest: 1, connectTimeout: 3_000, commandTimeout: 3_000 }
  const queue = new Queue('mason-runs', { connection })
  queue.on('error', () => {})
  const client = createClient({ url })
  try {
    return await submitAll(load, async (at, wrong) => {
      const name = `mq-${at}`
      const run_id = newRunId()
      const data = { prompt: promptOf(name, []), user_id: 'mq', business_id: 'default', run_id, ...wrong }
      await persist(() => queue.add('run', data, { jobId: name }))
      for (;;) {
        const job = await persist(async () => (await queue.getJob(name)) ?? null)
        if (job?.failedReason) return { name, errors: JSON.parse(job.failedReason) }
        if (job === null) break
        await pause(100)
      }
      const { status } = await persist(() => client.wait(run_id))
      return { name, run_id, status }
    })
  } finally {
    await queue.close()
  }
}

/** What a proxy knows, beside what the database has of its user. */
const compare = (
  proxy: string,
  known: readonly Known[],
  rows: readonly { run_id: string; status: string }[],
  { count, refused }: Load,
): string[] => {
  const statuses = new Map(rows.map(({ run_id, status }) => [run_id, status]))
  const admitted = known.filter(({ run_id }) => run_id !== undefined)
  const wrong = known.filter(({ errors }) => errors?.some(({ pointer }) => pointer === wrongPointer))
  return [
    ...(rows.length === count ? [] : [`${proxy}: ${rows.length} runs and not ${count}`]),
    ...(new Set(admitted.map(({ run_id }) => run_id)).size === count
      ? []
      : [`${proxy} knows ${admitted.length} runs`]),
    ...(wrong.length === refused
      ? []
      : [`${proxy} knows the errors of ${wrong.length} refused jobs and not of ${refused}`]),
    ...admitted
      .filter(({ run_id = '', status }) => status !== 'completed' || statuses.get(run_id) !== status)
      .map(
        ({ name, run_id = '', status }) =>
          `${name}: ${run_id} is ${status} to its proxy and ${statuses.get(run_id)}`,
      ),
  ]
}
