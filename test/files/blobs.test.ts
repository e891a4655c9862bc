// backends: both
// asserts: invariants

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect } from 'vitest'
import { sha256 } from '../../src/infra/lib/ids.ts'
import type { RunRequest } from '../../src/state/run-request.ts'
import { unique } from '../support/backend.ts'
import { adminToken, runtimeTest } from '../support/integration-test.ts'
import { count } from '../support/runs.ts'
import { calling, say } from '../support/script.ts'
import { deadline } from '../support/test-runtime.ts'

/** A tool whose result is what it is called with; with `ask` it is also what a person answers. */
const repeatTool = `import { z } from '${import.meta.resolve('zod')}'
import { defineTool } from '${fileURLToPath(new URL('../../src/graph/definitions.ts', import.meta.url))}'
export default defineTool({
  name: 'repeat', description: 'Repeats JSON', kinds: ['call'], input: z.record(z.string(), z.json()), reads: [], writes: [],
  async run(_state, { call, ask, checkpoint }) {
    const { ask: isAsked, ...result } = call?.input ?? {}
    if (!isAsked) return checkpoint({ summary: 'Repeated', result })
    const reply = await ask({ question: 'Which?', schema: { type: 'object' }, options: [], expires_in_ms: 60_000 })
    return checkpoint({ summary: 'Asked', result: { ...result, ...reply.answer, answer: reply.answer } })
  },
})`

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, async ({}, { onCleanup }) => {
  const folder = await mkdtemp(join(tmpdir(), 'mason-tools-'))
  onCleanup(() => rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, 'repeat.tool.ts'), repeatTool)
  return { toolFolders: [folder] }
})

type Attack = {
  request?: (hash: string) => Partial<RunRequest>
  planner?: (hash: string) => object[]
  answer?: (hash: string) => object
  output?: (hash: string) => object
}

/** JSON that names a blob in each way that Mason itself does. */
const naming = (hash: string) => ({
  ...{ blob: hash, bytes: 9, head: 'h', local_path: `blob:${hash}`, text: { blob: hash } },
  origin_files: [{ name: 'a.txt', type: 'text/plain', local_path: `blob:${hash}`, mapping: null }],
})
const fileNamed = (name: string) => ({ name, type: 'text/plain', content_base64: 'eA==' })

describe('a run of another user that names a blob', () => {
  test.for<[string, Attack]>([
    ['in its prompt', { request: (hash) => ({ prompt: JSON.stringify(naming(hash)) }) }],
    ['in its metadata', { request: (hash) => ({ metadata: naming(hash) }) }],
    [
      'in the name and the type of a file',
      {
        request: (hash) => ({
          files: [
            fileNamed(`"blob":"${hash}"`),
            { ...fileNamed('b'), type: `"blob":"${hash}"` },
            fileNamed(`blob:${hash}`),
          ],
        }),
      },
    ],
    [
      'in the arguments of a call and its result',
      { planner: (hash) => [calling(['repeat', { data: naming(hash) }])] },
    ],
    [
      'in place of a large result',
      {
        planner: (hash) => [
          calling(['repeat', { blob: hash, bytes: 9, head: 'h' }]),
          calling(['read_result', { action_id: 4 }]),
        ],
      },
    ],
    [
      'in the answer to a question',
      { planner: () => [calling(['repeat', { ask: true }])], answer: (hash) => naming(hash) },
    ],
    [
      'in its structured answer',
      {
        request: () => ({ output: { structure: [{ id: 'blob', expected: 'all', type: 'json' }] } }),
        output: (hash) => ({ blob: naming(hash) }),
      },
    ],
  ])(
    '%s reads no byte of it and holds it no longer than its owner',
    async ([, attack], { server, runtime, model, database }) => {
      const business = unique('b')
      const api = runtime.of(business)
      const secret = JSON.stringify({ text: unique('secret') })
      const hash = sha256(Buffer.from(secret))
      const owner = await api.submit({
        ...{ prompt: 'mine', user_id: 'owner', delay_ms: 86_400_000 },
        files: [
          { name: 'a.txt', type: 'text/plain', content_base64: Buffer.from(secret).toString('base64') },
        ],
      })
      const call = (method: string, path: string, json?: object) =>
        server.call(method, `${path}?business_id=${business}`, { token: adminToken, ...(json && { json }) })
      const blobOf = (run: string) => call('GET', `/v1/runs/${run}/blobs/${hash}`)
      expect((await blobOf(owner.run.id)).text).toBe(secret)

      say(model, {
        planner: [...(attack.planner?.(hash) ?? []), { text: 'Done.' }],
        output: [{ text: JSON.stringify(attack.output?.(hash) ?? {}) }],
      })
      const request = { prompt: 'yours', user_id: 'other', ...attack.request?.(hash) }
      const { id } = (await call('POST', '/v1/runs', request)).body
      const waiting = await api.wait(id, deadline())
      if (waiting.input_request && attack.answer) {
        await call('POST', `/v1/runs/${id}/input`, {
          request_id: waiting.input_request.id,
          answer: attack.answer(hash),
        })
        await api.wait(id, deadline())
      }
      expect(await api.run(id)).toMatchObject({ status: 'completed' })
      expect((await blobOf(id)).status).toBe(404)
      for (const path of [`/v1/runs/${id}/state`, `/v1/runs/${id}`])
        expect((await call('GET', path)).text).not.toContain(JSON.parse(secret).text)
      expect(JSON.stringify(model.requests('planner'))).not.toContain(JSON.parse(secret).text)

      await api.deleteSession(owner.run.session_id)
      expect(await count(database, 'blobs WHERE sha256 = $1', [hash])).toBe(0)
    },
  )
})
