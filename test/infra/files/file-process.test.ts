import { expect, test } from 'vitest'
import { openFileProcess } from '../../../src/infra/files/file-process.ts'

test('a machine that can start no process has no memory for it: no fault of the file, nor of the run', async () => {
  const { signal } = new AbortController()
  const job = { kind: 'query', sql: '', tables: [], kept: null } as const
  const refusing = (code: string) =>
    openFileProcess({ maxBytes: 1, maxMs: 1 }, () => {
      throw Object.assign(new Error(`spawn ${code}`), { code })
    })
  await using full = refusing('ENOMEM')
  expect(await full.ask(job, signal)).toEqual({ ok: false, kind: 'starved' })
  await using absent = refusing('ENOSYS')
  await expect(absent.ask(job, signal)).rejects.toThrow('spawn ENOSYS')
})
