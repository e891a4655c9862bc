import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { type Database, queryOne } from '../../src/infra/database/database.ts'
import { openPostgresDatabase } from '../../src/infra/database/postgres.ts'
import { maxUploadBytes } from '../../src/state/uploaded-file.ts'
import { type Member, openFleet } from '../fleet/members.ts'
import { randomFrom } from '../fleet/random.ts'
import type { Servers } from '../fleet/servers.ts'
import type { Findings, SuiteOptions } from '../suite.ts'
import { createSentFile } from './sent-file.ts'

const megabyte = 1024 * 1024
/** What the API may take while files of any size arrive and are read. */
const maxRssMb = 512
const atOnce = 8

const named = { 'x-file-name': 'a.bin', 'content-type': 'application/octet-stream' }

/** Uploads to `mason serve --role api`: under SIGKILL, as large as they may be, several at once, and larger. */
export const uploadFiles = async (
  servers: Pick<Servers, 'databaseUrl' | 'redisUrl'>,
  { seed, scale, say, signal }: SuiteOptions,
  settings: Record<string, string> = {},
): Promise<Findings> => {
  const failures: string[] = []
  const length = Math.round(maxUploadBytes * Math.min(1, scale))
  const killedLength = Math.round(length / 4)
  const kills = Math.max(2, Math.round(20 * scale))
  await using fleet = openFleet(
    { ...servers, [Symbol.asyncDispose]: async () => {} },
    '',
    undefined,
    settings,
  )
  const database = openPostgresDatabase({ url: servers.databaseUrl, max: 2 })
  try {
    const killed = await sendUnderKills(fleet.startApi, database, { seed, kills, length: killedLength })
    failures.push(...killed.failures)
    say(`${killed.kills} kills are survived`)
    signal.throwIfAborted()

    const api = await fleet.startApi()
    const before = api.peakRssMb()
    const stop = watchBackends(database)
    say(`a file of ${length / megabyte} MB`)
    const file = createSentFile(length, seed)
    const hash = file.hash()
    const since = performance.now()
    const reply = await file.send(`${api.url}/v1/files`, 'POST', named)
    const seconds = (performance.now() - since) / 1000
    const received = (await reply?.json()) as { id: string; sha256: string }
    if (reply?.status !== 201 || received.sha256 !== hash)
      failures.push(`the large file: ${reply?.status} ${JSON.stringify(received)}`)
    failures.push(...(await checkRead(api, received.id, hash)))
    const backendMb = await stop()

    signal.throwIfAborted()
    say(`${atOnce} files at once`)
    const several = await Promise.all(
      Array.from({ length: atOnce }, async (_, nth) => {
        const one = createSentFile(Math.floor(length / atOnce), seed + nth + 1)
        const answer = await one.send(`${api.url}/v1/files`, 'POST', named)
        return (await answer?.text())?.includes(one.hash()) === true
      }),
    )
    if (several.includes(false)) failures.push('one of several files at once did not arrive')
    failures.push(...(await checkTooLarge(api, database, scale >= 1)))
    const peak = api.peakRssMb()
    if (peak > maxRssMb) failures.push(`the API took ${peak} MB`)
    return {
      figures: {
        kills: killed.kills,
        'conflicts at the offset': killed.conflicts,
        'MB of the killed upload': killedLength / megabyte,
        'MB of the large file': length / megabyte,
        'seconds of the large file': Math.round(seconds * 10) / 10,
        'API RSS before, MB': before,
        'API peak RSS, MB': peak,
        'database connection, peak of its own memory, MB': backendMb,
      },
      failures,
    }
  } finally {
    await database.close()
  }
}

/** Each kill comes as a part of the rest has been sent, the last one as all of it has. */
const sendUnderKills = async (
  startApi: () => Promise<Member>,
  database: Database,
  { seed, kills, length }: { seed: number; kills: number; length: number },
): Promise<{ kills: number; conflicts: number; failures: string[] }> => {
  const random = randomFrom(seed)
  const file = createSentFile(length, seed)
  const failures: string[] = []
  let api = await startApi()
  const open = await fetch(`${api.url}/v1/files`, {
    method: 'POST',
    headers: { ...named, 'upload-length': String(length) },
  })
  const { id } = (await open.json()) as { id: string }
  const readOffset = async (): Promise<number> => {
    const { headers } = await fetch(`${api.url}/v1/files/${id}`, { method: 'HEAD' })
    return Number(headers.get('upload-offset'))
  }
  const patch = (offset: number, onSent?: (sent: number) => void): Promise<Response | null> =>
    file.send(
      `${api.url}/v1/files/${id}`,
      'PATCH',
      { 'upload-offset': String(offset) },
      { offset, ...(onSent && { onSent }) },
    )
  let conflicts = 0
  let offset = 0
  for (let nth = 1; nth <= kills; nth++) {
    const rest = length - offset
    const killAt = nth === kills ? length : offset + 1 + random.below(Math.ceil(rest / (kills - nth + 1)))
    let sent = offset
    const reply = await patch(offset, (at) => {
      sent = at
      if (at >= killAt) process.kill(api.pid, 'SIGKILL')
    })
    // a statement of the killed process may have been committed after its offset was read
    if (reply?.status === 409) conflicts++
    process.kill(api.pid, 'SIGKILL')
    await api.gone
    api = await startApi()
    const next = await readOffset()
    if (next < offset || next > sent)
      failures.push(`kill ${nth}: the offset went from ${offset} to ${next}, and ${sent} bytes were sent`)
    offset = next
  }
  for (let tries = 0; offset < length && tries < 10; tries++) {
    await patch(offset)
    offset = await readOffset()
  }
  const whole = await fetch(`${api.url}/v1/files/${id}`)
  const { sha256, bytes } = (await whole.json()) as { sha256: string; bytes: number }
  if (sha256 !== file.hash() || bytes !== length)
    failures.push(`after ${kills} kills the file has ${bytes} bytes of ${length} with the hash ${sha256}`)
  const parts = await queryOne<{ count: number; bytes: number; odd: number }>(
    database,
    `SELECT count(*)::int AS count, sum(octet_length(bytes))::int AS bytes,
       count(*) FILTER (WHERE octet_length(bytes) <> ${megabyte})::int AS odd FROM file_parts WHERE file_id = $1`,
    [id],
  )
  const expected = {
    count: Math.ceil(length / megabyte),
    bytes: length,
    odd: length % megabyte === 0 ? 0 : 1,
  }
  if (JSON.stringify(parts) !== JSON.stringify(expected))
    failures.push(`its parts are ${JSON.stringify(parts)} and not ${JSON.stringify(expected)}`)
  await api.stop()
  return { kills, conflicts, failures }
}

/** A run that names the file gives its bytes. */
const checkRead = async (api: Member, fileId: string, expected: string): Promise<string[]> => {
  const submitted = await fetch(`${api.url}/v1/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: 'p', user_id: 'u', delay_ms: 86_400_000, files: [{ file_id: fileId }] }),
  })
  const { id } = (await submitted.json()) as { id: string }
  const content = await fetch(`${api.url}/v1/runs/${id}/blobs/${expected}`)
  const hash = createHash('sha256')
  for await (const chunk of content.body ?? []) hash.update(chunk)
  const read = hash.digest('hex')
  return content.status === 200 && read === expected ? [] : [`the file reads as ${content.status} ${read}`]
}

/** A file over the limit leaves nothing: by what its headers say, and with `whole` by the bytes themselves. */
const checkTooLarge = async (api: Member, database: Database, whole: boolean): Promise<string[]> => {
  const failures: string[] = []
  const readRows = () =>
    queryOne<{ files: number; parts: number }>(
      database,
      'SELECT (SELECT count(*)::int FROM files) AS files, (SELECT count(*)::int FROM file_parts) AS parts',
      [],
    )
  const before = JSON.stringify(await readRows())
  const file = createSentFile(maxUploadBytes + 1, 1)
  const length = String(file.length)
  const check = (what: string, status: number | undefined, body: string | undefined): void => {
    if ((status !== 413 && status !== 422) || !body?.includes('512 MB'))
      failures.push(`a file that is too large by ${what} is answered by ${status} ${body}`)
  }
  for (const header of ['content-length', 'upload-length']) {
    // its sender waits for the answer before it sends a byte
    const sent = request(`${api.url}/v1/files`, { method: 'POST', headers: { ...named, [header]: length } })
    sent.flushHeaders()
    const [reply] = (await once(sent, 'response')) as [IncomingMessage]
    check(header, reply.statusCode, await text(reply))
    sent.destroy()
  }
  const reply = whole ? await file.send(`${api.url}/v1/files`, 'POST', named) : null
  if (whole) check('its bytes', reply?.status, await reply?.text())
  const after = JSON.stringify(await readRows())
  if (before !== after) failures.push(`refused files left rows: ${before} became ${after}`)
  return failures
}

/** The most memory that one connection of the database holds for itself; NaN where its server is on another machine. */
const watchBackends = (database: Database): (() => Promise<number>) => {
  let peakKb = Number.NaN
  let isStopped = false
  const readPid = async (): Promise<void> => {
    const { rows } = await database.query<{ pid: number }>(
      'SELECT pid FROM pg_stat_activity WHERE datname = current_database()',
    )
    for (const { pid } of rows) {
      try {
        const kb = /^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
        if (!(peakKb > Number(kb))) peakKb = Number(kb)
      } catch {
        // it ended, or runs elsewhere
      }
    }
    if (!isStopped) timer = setTimeout(() => void readPid(), 200)
  }
  let timer = setTimeout(() => void readPid(), 0)
  return async () => {
    isStopped = true
    clearTimeout(timer)
    return Math.round(peakKb / 102.4) / 10
  }
}
