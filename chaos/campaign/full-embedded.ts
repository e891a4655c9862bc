import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { commandLine } from '../../test/support/script-flags.ts'
import { mountSmallDisk } from '../failures/small-disk.ts'
import { type Answer, openHttpClient } from '../fleet/http-client.ts'
import { openProcesses } from './processes.ts'

const megabytes = 160
const rounds = 3
const runsOfRound = 8
/** What Mason calls it. The words of the system stand only where an error is logged with its cause. */
const fullDisk = 'the disk of the database is full'

/**
 * The disk of an embedded database is full while runs come in, then there is space again: what was accepted ends with its
 * answer, and the process says what was wrong and lives on. Gives what was not so.
 */
export const fillEmbedded = async (
  signal: AbortSignal,
): Promise<{ accepted: number; failures: string[] }> => {
  await using disk = await mountSmallDisk(megabytes)
  const folder = await mkdtemp(join(tmpdir(), 'mason-embedded-'))
  await using _folder = { [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) }
  await using processes = openProcesses(join(folder, 'logs'))
  const settings = { MASON_AUTH: 'off', PORT: '0', LOG_LEVEL: 'warn', NO_COLOR: '1', MASON_LEASE_MS: '2000' }
  const server = processes.start('serve', [...commandLine(), 'serve'], {
    env: { ...settings, DATA_DIR: join(disk.path, 'data') },
  })
  const listening = await server.waitForLine((line) => line.includes('listens on'))
  const url = /http:\S+/.exec(listening ?? '')?.[0]
  if (url === undefined) return { accepted: 0, failures: processes.mentions('') }
  using http = openHttpClient(url)

  /** Until it is accepted, where that is wanted; a database without space may refuse. */
  const submit = async (nth: number, tries: number): Promise<Answer | null> => {
    for (let attempt = 1; attempt <= tries; attempt++) {
      const body = { prompt: `What is ${nth} + 1?`, user_id: 'u1' }
      const answer = await http.post('/v1/runs', body, { 'idempotency-key': `e${nth}` }).catch(() => null)
      if (answer && answer.status < 500) return answer
      await pause(200, undefined, { signal })
    }
    return null
  }
  const isMet = (): boolean => processes.mentions(fullDisk).length > 0
  const failures: string[] = []
  const expected = new Map<string, string>()
  for (let round = 0; round < rounds; round++) {
    const numbers = Array.from({ length: runsOfRound }, (_, nth) => round * runsOfRound + nth)
    const first = await submit(numbers[0] ?? 0, 50)
    if (first?.status !== 202) failures.push(`with space: ${JSON.stringify(first)}`)
    await disk.fill()
    await Promise.all(numbers.map((nth) => submit(nth, 2)))
    // until it was met, and then for a while
    for (let waited = 0; waited < 200 && !isMet(); waited++) await pause(100, undefined, { signal })
    await pause(3000, undefined, { signal })
    await disk.free()
    for (const nth of numbers) {
      const answer = await submit(nth, 100)
      if (answer) expected.set(String(answer.body.id), `${nth} + 1 = **${nth + 1}**`)
      else failures.push(`run ${nth} was not accepted when there was space again`)
    }
  }
  for (const [id, answer] of expected) {
    const ends = AbortSignal.timeout(60_000)
    let run = await http.get(`/v1/runs/${id}`)
    while (/queued|running/.test(run.body.status) && !ends.aborted) {
      await pause(100, undefined, { signal })
      run = await http.get(`/v1/runs/${id}`)
    }
    const { status, answer: given, error } = run.body
    if (status !== 'completed' || given !== answer)
      failures.push(`embedded: ${id} is ${status} with ${given}: ${JSON.stringify(error)}`)
  }
  if (!isMet()) failures.push('embedded: the log does not say that the disk was full')
  server.kill('SIGTERM')
  const { code } = await server.exited
  if (code !== 0) failures.push(`embedded: the server ended with ${code}`)
  return { accepted: expected.size, failures }
}
