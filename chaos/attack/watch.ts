import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { promptOf } from '../fleet/job.ts'
import type { Member } from '../fleet/members.ts'
import { quantile } from '../fleet/quantile.ts'
import type { Call } from './stage.ts'

/**
 * The longest that an event loop may stand still, and the most memory that the API may ever have had, with the heap of
 * docs/scale.md.
 */
export const limits = { turnMs: 500, apiMb: 512, heapMb: 384, p95Ratio: 3 }

const everyMs = 400

/** Asks every process once in a while how long its event loop was blocked, and for its memory; `doing`: what was under way. */
export const watchProcesses = (members: readonly Member[], doing: () => string) => {
  const over = new AbortController()
  const longest: Record<string, { cpu: number; wall: number; while: string }> = {}
  const largest: Record<string, { rss_mb: number; heap_mb: number; external_mb: number; while: string }> = {}
  const blocked: string[] = []
  const ends: string[] = []
  const gone = members.map(async (member) => {
    const end = await member.gone
    if (!over.signal.aborted)
      ends.push(
        `${member.name} is gone: ${JSON.stringify(end)} ${member.said.slice(-3).join(' ').slice(-600)}`,
      )
  })
  const watched = members.map(async (member) => {
    await member.probe()
    while (!over.signal.aborted) {
      const before = doing()
      await pause(everyMs)
      const probe = await member.probe().catch(() => null)
      if (!probe) return
      const { cpu, wall } = probe.turn_ms
      const known = longest[member.name]
      if (!known || cpu > known.cpu) longest[member.name] = { cpu, wall, while: before }
      if (probe.rss_mb > (largest[member.name]?.rss_mb ?? 0))
        largest[member.name] = { ...probe, while: before }
      if (cpu > limits.turnMs)
        blocked.push(
          `the event loop of ${member.name} stood still for ${cpu} ms (${wall} ms by the clock) during ${before}; ${doing()}`,
        )
    }
  })
  return {
    longest,
    largest,
    ends,
    async stop(): Promise<string[]> {
      over.abort()
      await Promise.all(watched)
      void gone
      return [...ends, ...blocked]
    },
  }
}

/** So many at once, each after a pause: a load that does not grow where the machine is slow. */
const lanes = 2
const pauseMs = 250
const patienceMs = 60_000

/** Another business's runs, one after another until `work` is over: the milliseconds of each. */
export const bystandersWhile = async (
  call: Call,
  token: string,
  name: string,
  work: Promise<unknown>,
  ms: number[] = [],
): Promise<{ ms: number[]; failures: string[] }> => {
  let isOver = false
  const ended = work.finally(() => {
    isOver = true
  })
  const failures: string[] = []
  const one = async (job: string): Promise<void> => {
    const since = performance.now()
    const body = { prompt: promptOf(job, ['calculate']), user_id: 'bystander' }
    let run = await call('POST', '/v1/runs/wait', body, token)
    for (; run.status === 'queued' || run.status === 'running'; await pause(200)) {
      if (performance.now() - since > patienceMs) break
      run = await call('GET', `/v1/runs/${run.id}`, undefined, token)
    }
    ms.push(performance.now() - since)
    if (run.answer === `Done: ${job}.`) return
    failures.push(`the bystander's run ${run.id} is ${run.status}: ${JSON.stringify(run.error)}`)
  }
  const lane = async (nr: number): Promise<void> => {
    for (let at = 0; !isOver; at++) {
      await one(`${name}.${nr}.${at}`).catch((error) => failures.push(`a bystander's run: ${String(error)}`))
      await pause(pauseMs)
    }
  }
  await Promise.all([ended, ...Array.from({ length: lanes }, (_, nr) => lane(nr))])
  return { ms, failures }
}

export const p95 = (ms: readonly number[]): number => quantile(ms, 0.95)

/** Seconds of processor time that a process of this machine used so far. */
export const cpuSecondsOf = (pid: number): number => {
  // after the name in parentheses: state, …, utime, stime as the 12th and 13th, in hundredths
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}
