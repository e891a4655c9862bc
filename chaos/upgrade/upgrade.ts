import { execFile } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startVendors } from '../attack/stage.ts'
import { audit, drained, firstOf, openWitness } from '../fleet/audit.ts'
import { openHttpClient } from '../fleet/http-client.ts'
import { promptOf } from '../fleet/job.ts'
import { type Member, openFleet } from '../fleet/members.ts'
import { openServers, otherBuild } from '../fleet/servers.ts'
import type { Findings, SuiteOptions } from '../suite.ts'

const execute = promisify(execFile)
const thisBuild = fileURLToPath(new URL('../..', import.meta.url))
const clients = 32

/** Follows docs/upgrade.md from the build in CHAOS_BUILD to this one, while clients submit runs and wait for them. */
export const upgrade = async ({ scale, say, signal }: SuiteOptions): Promise<Findings> => {
  if (!otherBuild)
    return { figures: {}, failures: ['set CHAOS_BUILD to a checkout of the version before, with its build'] }
  const runs = Math.max(100, Math.round(10_000 * scale))
  await using servers = await openServers()
  const mason = async (build: string, command: string): Promise<void> => {
    const env = { ...process.env, DATABASE_URL: servers.databaseUrl, REDIS_URL: servers.redisUrl }
    await execute(process.execPath, [`${build}/dist/src/cli.js`, command], { env, signal })
  }
  await mason(otherBuild, 'migrate')
  await using vendors = await startVendors()
  await using before = openFleet(servers, '', vendors.modelUrl)
  await using after = openFleet(servers, '', vendors.modelUrl, {}, thisBuild)
  let api = await before.startApi()
  const port = Number(new URL(api.url).port)
  const crew = await Promise.all([before.startWorker(), before.startWorker()])
  using http = openHttpClient(api.url)

  const accepted = new Set<string>()
  const failures: string[] = []
  let retried = 0
  let next = 0
  const submit = async (name: string): Promise<void> => {
    const body = { prompt: promptOf(name, ['calculate']), user_id: 'upgrade' }
    for (; !signal.aborted; retried++, await pause(100)) {
      const answer = await http.post('/v1/runs/wait', body, { 'idempotency-key': name }).catch(() => null)
      if (answer === null || answer.status === 503) continue
      if (answer.status === 200 || answer.status === 202) accepted.add(name)
      else
        failures.push(`${name} was answered ${answer.status}: ${JSON.stringify(answer.body).slice(0, 300)}`)
      return
    }
  }
  const client = async (): Promise<void> => {
    while (next < runs) await submit(`job${next++}`)
  }
  const load = Promise.all(Array.from({ length: clients }, client))

  const stop = async (member: Member): Promise<void> => {
    const { code, signal: killedBy } = await member.stop()
    if (code !== 0) failures.push(`${member.name} exited with ${code ?? killedBy}`)
  }
  while (accepted.size < runs / 2) await pause(100, undefined, { signal })
  const acceptedBefore = accepted.size
  say(`${acceptedBefore} runs by the version before; migrating`)
  await mason(thisBuild, 'migrate')
  say('migrated; the workers, one after the other')
  for (const worker of crew) {
    await stop(worker)
    await after.startWorker()
  }
  say('the API')
  await stop(api)
  api = await after.startApi({ port })
  await load

  const witness = await openWitness(servers.databaseUrl)
  try {
    const drainedMs = await drained(witness, 60_000, signal)
    if (drainedMs === null) failures.push('runs were left unfinished after 60 s')
    const { lost, doubled, actions, failures: found } = await audit(witness, accepted, new Map())
    return {
      figures: {
        'runs accepted': accepted.size,
        'of these before the migration': acceptedBefore,
        'requests sent again': retried,
        ...{ lost, doubled, actions },
        'drained after, ms': drainedMs ?? 'never',
      },
      failures: firstOf([...failures, ...found]),
    }
  } finally {
    await witness.end()
  }
}
