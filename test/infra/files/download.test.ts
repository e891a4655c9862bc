import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Body, Egress } from '../../../src/infra/egress/port.ts'
import { DiskFault } from '../../../src/infra/files/origins/disk.ts'
import { download } from '../../../src/infra/files/origins/download.ts'
import { FileFault } from '../../../src/infra/files/origins/fault.ts'
import { openFolder } from '../../support/file-samples.ts'

const { signal } = new AbortController()
const request = { url: 'http://a.example/', shown: 'a.example', maxBytes: 9, maxMs: 60_000, refusal: String }

/** An answer with these bytes, which breaks off after them. */
const answering = (text: string, breaksOff = false): Egress => {
  const chunks = [Buffer.from(text)]
  const body: Body = {
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
  download(egress, request, path, signal).catch((error: unknown) => error)

test('a disk that takes nothing is no fault of the address, and another try may go well', async () => {
  const full = await faultOf(answering('x'), '/dev/full')
  expect(full).toBeInstanceOf(DiskFault)
  expect(full).toMatchObject({ code: 'ENOSPC', passing: true })
  expect(String(full)).toContain('this machine has no room for it')
  await using folder = await openFolder()
  expect(await faultOf(answering('x'), join(folder.path, 'gone', 'f'))).toMatchObject({ code: 'ENOENT' })
  const broken = await faultOf(answering('x', true), join(folder.path, 'f'))
  expect(broken).toBeInstanceOf(FileFault)
  expect(String(broken)).toContain('a.example could not be reached (ECONNRESET)')
  expect(String(await faultOf(answering('0123456789'), join(folder.path, 'g')))).toContain('larger than')
  expect(await download(answering('abc'), request, join(folder.path, 'h'), signal)).toMatchObject({
    bytes: 3,
  })
})
