import { expect, test } from 'vitest'
import { openFileProcess } from '../../src/files/file-process.ts'

test('a machine that cannot start a process reports lack of memory, an error of neither the file nor the run', async () => {
  const { signal } = new AbortController()
  const job = { kind: 'reader', name: 'query', input: null } as const
  const refusing = (code: string) =>
    openFileProcess({ maxBytes: 1, maxMs: 1, readers: [] }, () => {
      throw Object.assign(new Error(`spawn ${code}`), { code })
    })
  await using full = refusing('ENOMEM')
  expect(await full.run(job, signal)).toEqual({ ok: false, kind: 'starved' })
  await using absent = refusing('ENOSYS')
  await expect(absent.run(job, signal)).rejects.toThrow('spawn ENOSYS')
})
