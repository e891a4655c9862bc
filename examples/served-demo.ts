import { randomBytes } from 'node:crypto'
import { runCommand } from '../src/app/cli/command-runner.ts'
import { exitCodes } from '../src/app/cli/errors.ts'
import { followRun } from '../src/app/cli/follow-run.ts'
import type { RunHandle } from '../src/app/cli/gateway.ts'
import { openHttpGateway } from '../src/app/cli/http-gateway.ts'
import { listenForInterrupt } from '../src/app/cli/interrupts.ts'
import { createRenderer } from '../src/app/cli/renderer.ts'
import { readRequestFiles } from '../src/app/cli/request-files.ts'
import { printRunHeader } from '../src/app/cli/run.ts'
import { openTerminal } from '../src/app/cli/terminal.ts'
import { readConfig } from '../src/app/read-config.ts'
import type { Config, Environment } from '../src/infra/config/config.ts'
import { queryOne } from '../src/infra/database/database.ts'
import { openDatabases } from '../src/infra/database/open-database.ts'
import { toPackagePath } from '../src/infra/lib/package-path.ts'
import { silentLog } from '../src/infra/lib/silent-log.ts'
import { MasonError } from '../src/state/errors.ts'
import type { Sql } from '../src/state/ports/sql.ts'
import { type RunningProcess, startMason } from './served-demo/processes.ts'
import { startSlowModel } from './served-demo/slow-model.ts'

/** `npm run demo:served`: one API process and two workers on real servers. The worker that has the run is killed. */

const question =
  'Which region has the highest revenue from completed orders, and how many orders were returned?'
const leaseMs = 3000
const slowness = 700

const demo = async (env: Environment): Promise<number> => {
  const config = readServedConfig(env)
  const terminal = openTerminal(env)
  const { out, colors } = terminal
  const interrupt = listenForInterrupt()
  const closers: (() => unknown)[] = [() => interrupt.stop()]
  try {
    out.write(`${colors.bold('Mason served demo')}: PostgreSQL, Redis, one API process and two workers\n`)
    const given = await settings(env, closers)
    const databases = await openDatabases(config, silentLog, { schema: 'migrate' })
    closers.push(() => databases.close())
    const workers = new Map<string, RunningProcess>()
    const start = async (args: string[], ready: RegExp) => {
      const mason = await startMason(args, given, ready)
      closers.push(() => mason.stop())
      return mason
    }
    const api = await start(['serve', '--role', 'api', '--port', '0'], /listens on (http\S+)/)
    const baseUrl = api.said[1] ?? ''
    out.write(`  api       process ${api.pid} at ${baseUrl}\n`)
    for (const name of ['A', 'B']) {
      const worker = await start(['worker'], /takes \d+ runs/)
      workers.set(name, worker)
      out.write(`  worker ${name}  process ${worker.pid}\n`)
    }
    const renderer = createRenderer(terminal)
    const gateway = openHttpGateway({ url: baseUrl, token: null }, (line) => renderer.note(line))
    const files = await readRequestFiles([toPackagePath('examples', 'data', 'orders.csv')])
    out.write(
      `\n${colors.bold('question')}  ${question}\n${colors.bold('file')}      examples/data/orders.csv\n`,
    )
    const followed = await gateway.submit({ prompt: question, user_id: 'demo', files })
    printRunHeader(followed.run, gateway, terminal)
    const story = createStory(databases.worker, workers, (line) => renderer.note(line))
    const code = await followRun(story.watch(followed), { renderer, terminal, gateway }, interrupt.signal)
    out.write(`${await story.moral(followed.run.id)}\n`)
    return code
  } finally {
    for (const close of closers.reverse()) await close()
  }
}

/** What the workers share. Without OPENAI_* a model of the demo's own answers. */
const settings = async (env: Environment, closers: (() => unknown)[]): Promise<NodeJS.ProcessEnv> => {
  const own = env.OPENAI_API_KEY || env.OPENAI_BASE_URL ? null : await startSlowModel(slowness)
  if (own) closers.push(() => own.close())
  return {
    ...env,
    MASON_AUTH: 'off',
    HOST: '127.0.0.1',
    MASON_LEASE_MS: String(leaseMs),
    MASON_MASTER_KEY: env.MASON_MASTER_KEY || randomBytes(32).toString('base64'),
    LOG_LEVEL: env.LOG_LEVEL || 'error',
    ...(own && { OPENAI_BASE_URL: own.baseUrl, OPENAI_MODEL: 'scripted' }),
  }
}

/** Its logins are created too, where the settings name some. */
const readServedConfig = (env: Environment): Config => {
  const config = readConfig({ ...env, MASON_MASTER_KEY: randomBytes(32).toString('base64') }, { role: 'run' })
  if (config.database.kind === 'postgres' && config.redisUrl) return config
  throw new MasonError('invalid_settings', 'this demo needs DATABASE_URL and REDIS_URL', {
    remedy:
      'start PostgreSQL with pgvector and Redis, and set both; `npm run demo` needs neither. On Debian: .ci/services.sh install && .ci/services.sh start /tmp/mason-services, then take the two addresses from /tmp/mason-services/env',
  })
}

/** Kills the worker that has the run once the plan is made, and tells who did what. */
const createStory = (
  sql: Sql,
  workers: ReadonlyMap<string, RunningProcess>,
  note: (line: string) => void,
) => {
  const seen: number[] = []
  let victim: string | null = null

  const kill = async (runId: string): Promise<void> => {
    const name = await ownerOf(sql, runId, workers)
    if (name === null) return
    victim = name
    workers.get(name)?.signal('SIGKILL')
    note(`worker ${name} had the run and was just killed (SIGKILL); its lease ends in ${leaseMs / 1000} s …`)
  }
  return {
    watch: (followed: RunHandle): RunHandle => ({
      ...followed,
      async *events(signal) {
        for await (const event of followed.events(signal)) {
          yield event
          if (event.event !== 'action') continue
          seen.push(event.id)
          if (victim === null && event.data.node === 'planner') await kill(followed.run.id)
        }
      },
    }),
    async moral(runId: string): Promise<string> {
      if (victim === null) return 'The run was over before its worker could be killed.'
      if (seen.some((id, index) => id !== index + 1))
        return `Actions are missing or doubled: ${seen.join(', ')}`
      const by = (await epochsOf(sql, runId)).map(
        ({ first, last }, index) =>
          `worker ${index === 0 ? victim : victim === 'A' ? 'B' : 'A'} did actions ${first} to ${last}`,
      )
      return `${by.join(', ')}: none lost, none twice.`
    },
  }
}

/** Which of our workers holds the lease; worker ids carry the process id. */
const ownerOf = async (
  sql: Sql,
  runId: string,
  workers: ReadonlyMap<string, RunningProcess>,
): Promise<string | null> => {
  const row = await queryOne<{ lease_owner: string | null }>(
    sql,
    "SELECT lease_owner FROM runs WHERE run_id = $1 AND status = 'running'",
    [runId],
  )
  const pid = Number(row?.lease_owner?.split('_')[1])
  return [...workers].find(([, worker]) => worker.pid === pid)?.[0] ?? null
}

/** Every claim has an epoch, and every action the epoch under which it was written. */
const epochsOf = async (sql: Sql, runId: string) => {
  const { rows } = await sql.query<{ first: number; last: number }>(
    'SELECT min(seq) AS first, max(seq) AS last FROM actions WHERE run_id = $1 GROUP BY epoch ORDER BY epoch',
    [runId],
  )
  return rows
}

await runCommand(async (env) => {
  const code = await demo(env())
  return code === exitCodes.inputRequired ? exitCodes.failed : code
})
