// backends: either

import { fork } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, vi } from 'vitest'
import { openFileProcess } from '../../src/files/file-process.ts'
import { documentReaders } from '../support/document-readers.ts'
import { openFolder } from '../support/file-samples.ts'
import { hostileFiles } from '../support/hostile-files.ts'
import { runtimeTest as test } from '../support/integration-test.ts'
import { say } from '../support/script.ts'

afterEach(() => void vi.unstubAllEnvs())

test('a run with forty hostile files has a note for each, goes on and leaves nothing behind', async ({
  model,
  runtime,
}) => {
  const hostile = await hostileFiles()
  expect(hostile).toHaveLength(40)
  await using temporary = await openFolder()
  vi.stubEnv('TMPDIR', temporary.path)
  say(model, { planner: [{ text: 'Still here.' }] })
  const files = hostile.map(([name, bytes]) => ({
    name,
    type: 'application/octet-stream',
    content_base64: Buffer.from(bytes).toString('base64'),
  }))
  const run = await runtime.complete({ prompt: 'Look at these', files })
  expect(run).toMatchObject({ status: 'completed', answer: 'Still here.' })
  const { documents, tables, other_files } = (await runtime.stateOf(run.id)).preprocessed_files
  const notes = hostile.map(([name, , note]) => {
    const { notes = [] } = (documents[name] ?? tables[name] ?? other_files[name] ?? {}) as {
      notes?: string[]
    }
    return { name, note: notes.join('; '), as: String(note), matches: note.test(notes.join('; ')) }
  })
  expect(notes.filter(({ matches }) => !matches)).toEqual([])
  expect(other_files['nested.zip/inner.zip/inner.zip']).toMatchObject({
    readable: false,
    notes: [expect.stringContaining('inside an archive inside an archive')],
  })
  const left = await readdir(temporary.path, { recursive: true })
  expect(left.filter((name) => name.includes('work-') || /\bf\d+$/.test(name))).toEqual([])
})

const endless = 'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT'

/** Starts a process that a busy machine serves before others, where this one may ask for it. */
const forkFirst = ((...args: Parameters<typeof fork>) => {
  const child = fork(...args)
  child.once('spawn', () => {
    try {
      setPriority(child.pid as number, -10)
    } catch {
      // only root may
    }
  })
  return child
}) as typeof fork

/** The processes that this one started to open files. */
const childrenHere = async (): Promise<number[]> => {
  const found: number[] = []
  for (const name of await readdir('/proc')) {
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '')
    const program = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')
    const parent = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]
    if (Number(parent) === process.pid && program.includes('files/child/main-process'))
      found.push(Number(name))
  }
  return found
}

test('a file or statement that exceeds its limits is stopped, and the next one is opened', async () => {
  await using folder = await openFolder()
  const path = join(folder.path, 'a.csv')
  await writeFile(path, 'n\n1\n')
  const tables = [
    {
      table: 't',
      path,
      name: 'a.csv',
      type: '',
      part: null,
      rows: 1,
      columns: [{ name: 'n', type: 'integer' as const }],
    },
  ]
  const { signal } = new AbortController()
  await using process = openFileProcess(
    { maxBytes: 300 * 1024 * 1024, maxMs: 1000, readers: documentReaders },
    forkFirst,
  )
  // a machine that gives it no time says so, and then another try may go well
  const ask = async (sql: string, until: AbortSignal = signal): ReturnType<typeof process.run> => {
    const ended = await process.run(
      { kind: 'reader', name: 'query', input: { sql, tables, cached: null } },
      until,
    )
    return 'kind' in ended && ended.kind === 'starved' ? ask(sql, until) : ended
  }
  expect(await ask(`${endless} sum(x) FROM n`)).toEqual({ ok: false, kind: 'time' })
  expect(await ask(`${endless} group_concat(hex(zeroblob(1000000))) FROM n`)).toMatchObject({ ok: false })
  // on a busy machine its second may be over before it began
  const opened = { ok: true, output: { columns: ['n'], rows: [[1]], hasMore: false } }
  await expect.poll(() => ask('SELECT n FROM t')).toEqual(opened)
  const control = new AbortController()
  const broken = ask(`${endless} sum(x) FROM n`, control.signal)
  control.abort(new Error('cancelled'))
  await expect(broken).rejects.toThrow('cancelled')
})

test('a process that the system kills for lack of memory is not an error of the file', async () => {
  const before = await childrenHere()
  await using process = openFileProcess({
    maxBytes: 300 * 1024 * 1024,
    maxMs: 60_000,
    readers: documentReaders,
  })
  const { signal } = new AbortController()
  const sql = `${endless} sum(x) FROM n`
  const starved = process.run(
    { kind: 'reader', name: 'query', input: { sql, tables: [], cached: null } },
    signal,
  )
  const child = await vi.waitUntil(async () => (await childrenHere()).find((pid) => !before.includes(pid)), {
    timeout: 90_000,
  })
  globalThis.process.kill(child, 'SIGKILL')
  expect(await starved).toEqual({ ok: false, kind: 'starved' })
})
