import { join } from 'node:path'
import { expect, test } from 'vitest'
import { downloadFile } from '../../../src/files/origins/download.ts'
import { DiskError, FileError } from '../../../src/files/origins/file-error.ts'
import type { Egress, EgressBody } from '../../../src/infra/egress/egress-port.ts'
import { openFolder } from '../../support/file-samples.ts'

const { signal } = new AbortController()
const request = {
  url: 'http://a.example/',
  source: 'a.example',
  maxBytes: 9,
  maxMs: 60_000,
  toRefusal: String,
}

/** An answer with these bytes, which breaks off after them. */
const answering = (text: string, breaksOff = false): Egress => {
  const chunks = [Buffer.from(text)]
  const body: EgressBody = {
    async read() {
      const next = chunks.shift()
      if (!next && breaksOff) throw Object.assign(new Error('gone'), { code: 'ECONNRESET' })
      return next ?? null
    },
    cancel() {},
  }
  return {
    request: async () => ({ status: 200, headers: new Map() as never, body }),
    [Symbol.asyncDispose]: async () => {},
  }
}
const faultOf = (egress: Egress, path: string): Promise<unknown> =>
  downloadFile(egress, request, path, signal).catch((error: unknown) => error)

test('a full disk is not an error of the address, and a retry may succeed', async () => {
  const full = await faultOf(answering('x'), '/dev/full')
  expect(full).toBeInstanceOf(DiskError)
  expect(full).toMatchObject({ code: 'ENOSPC', isTransient: true })
  expect(String(full)).toContain('this machine has no disk space for it')
  await using folder = await openFolder()
  expect(await faultOf(answering('x'), join(folder.path, 'gone', 'f'))).toMatchObject({ code: 'ENOENT' })
  const broken = await faultOf(answering('x', true), join(folder.path, 'f'))
  expect(broken).toBeInstanceOf(FileError)
  expect(String(broken)).toContain('a.example could not be reached (ECONNRESET)')
  expect(String(await faultOf(answering('0123456789'), join(folder.path, 'g')))).toContain('larger than')
  expect(await downloadFile(answering('abc'), request, join(folder.path, 'h'), signal)).toMatchObject({
    bytes: 3,
  })
})
