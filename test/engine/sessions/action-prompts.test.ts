// backends: either

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect } from 'vitest'
import { hashMessages } from '../../../src/graph/prompt-hash.ts'
import type { ActionPrompt, ActionView } from '../../../src/state/run-view.ts'
import { unique } from '../../support/backend.ts'
import type { TestServer } from '../../support/http.ts'
import { adminToken, runtimeTest } from '../../support/integration-test.ts'
import { calling } from '../../support/script.ts'

const kb = 1024
/** Tools whose `run` begins with this code, and then asks a model with messages of 600 KB. */
const tools: Record<string, { pure: boolean; needs: string[]; first: string }> = {
  ask_large: { pure: true, needs: [], first: '' },
  ask_impure: { pure: false, needs: [], first: '' },
  ask_with_files: { pure: true, needs: ['files'], first: 'await context.files.none?.()' },
}
const toSource = (name: string): string => `import { z } from '${import.meta.resolve('zod')}'
import { defineTool } from '${fileURLToPath(new URL('../../../src/graph/definitions.ts', import.meta.url))}'
export default defineTool({
  name: '${name}', description: 'Asks a model', kinds: ['call'], pure: ${tools[name]?.pure}, needs: ${JSON.stringify(tools[name]?.needs)},
  input: z.strictObject({}), reads: [], writes: [],
  async run(_state, context, signal) {
    const { models, checkpoint } = context
    ${tools[name]?.first}
    const messages = ['a', 'b', 'c'].map((letter) => ({ role: 'user', content: letter.repeat(${600 * kb}) }))
    const { text, usage } = await models.call({ role: 'output', messages }, signal)
    return checkpoint({ summary: 'Asked', result: { text }, usage })
  },
})`

const test = runtimeTest.extend('runtimeOptions', { scope: 'file' }, async ({}, { onCleanup }) => {
  const folder = await mkdtemp(join(tmpdir(), 'mason-tools-'))
  onCleanup(() => rm(folder, { recursive: true, force: true }))
  for (const name of Object.keys(tools))
    await writeFile(join(folder, `${name.replaceAll('_', '-')}.tool.ts`), toSource(name))
  return { toolFolders: [folder] }
})
const columns =
  'tenant, session_id, seq, run_id, turn, epoch, attempt_id, created_at, body, patch, visit_id, ms, worker'
const session = unique('s')
let server: TestServer
let actions: ActionView[]

const get = (of: string, token = adminToken) => server.call('GET', `/v1/sessions/${session}${of}`, { token })
const idOf = (node: string, nth = 0): number => actions.filter((one) => one.node === node)[nth]?.id ?? 0
const readPrompt = async (id: number, query = ''): Promise<ActionPrompt> => {
  const { status, body } = await get(`/actions/${id}/prompt${query}`)
  expect([status, body.detail]).toEqual([200, undefined])
  return body
}
const refuse = async (id: number | string): Promise<string> => {
  const { body } = await get(`/actions/${id}/prompt`)
  return `${body.code}: ${body.detail}`
}

test.beforeAll(async ({ server: s, runtime, model }) => {
  server = s
  const long = 'x'.repeat(40 * kb)
  model.script({
    planner: [
      ...[
        calling(['calculate', { expression: '1+1' }]),
        ...Object.keys(tools).map((name) => calling([name, {}])),
      ],
      { text: 'Done.' },
    ],
    output: Array.from({ length: 3 }, () => ({ text: long })),
  } as never)
  await runtime.complete({ prompt: 'one and one', session_id: session })
  actions = (await get('/actions')).body.data
})

describe('the prompt of an action', () => {
  test('is what the model was sent, message by message', async ({ model }) => {
    const sent = model.requests('planner')
    expect(sent.length).toBeGreaterThan(4)
    for (const [nth, { body }] of sent.entries()) {
      const prompt = await readPrompt(idOf('planner', nth))
      expect(prompt).toMatchObject({
        ...{ action: idOf('planner', nth), run_id: actions[0]?.run_id, node: 'planner', role: 'planner' },
        ...{ model: null, origin: 'as_sent', total: prompt.messages.length, has_more: false },
      })
      expect(prompt.sha256).toBe(hashMessages(prompt.messages as never))
      expect(prompt.rebuilt_sha256).toBe(prompt.sha256)
      expect(prompt.messages.map(({ role, content }) => [role, content])).toEqual(
        (body.messages as { role: string; content: string | null }[]).map(({ role, content }) => [
          role,
          content ?? '',
        ]),
      )
    }
  })

  test('says that it differs where it does, and that nothing was stored of an old one', async ({
    database,
  }) => {
    const id = idOf('planner')
    const { sha256, messages } = await readPrompt(id)
    const store = (hash: string | null) =>
      database.query(
        `WITH old AS (DELETE FROM actions WHERE session_id = $2 AND seq = $3 RETURNING *)
         INSERT INTO actions (${columns}, prompt_sha256) SELECT ${columns}, decode($1, 'hex') FROM old`,
        [hash, session, id],
      )
    const other = 'ab'.repeat(32)
    await store(other)
    expect(await readPrompt(id)).toMatchObject({
      origin: 'rebuilt_differs',
      sha256: other,
      rebuilt_sha256: sha256,
      messages,
    })
    await store(null)
    expect(await readPrompt(id)).toMatchObject({
      origin: 'rebuilt',
      sha256: null,
      rebuilt_sha256: sha256,
      messages,
    })
    await store(sha256)
    expect(await readPrompt(id)).toMatchObject({ origin: 'as_sent' })
  })

  test('comes in pages of 1 MB, but for the first message', async () => {
    const id = idOf('ask_large')
    const pages = await Promise.all(
      ['', '?after=1', '?after=2', '?after=3'].map((query) => readPrompt(id, query)),
    )
    expect(
      pages.map(({ messages, has_more, total }) => [
        messages.map(({ content }) => content[0]),
        has_more,
        total,
      ]),
    ).toEqual([
      [['a'], true, 3],
      [['b'], true, 3],
      [['c'], false, 3],
      [[], false, 3],
    ])
    for (const { origin, rebuilt_sha256, sha256 } of pages)
      expect([origin, rebuilt_sha256]).toEqual(['as_sent', sha256])
  })

  test('is refused where no model was called, or more than the state would be needed', async () => {
    expect(await refuse(idOf('load-session'))).toContain(
      'no_prompt: action 1 of "load-session" called no model',
    )
    expect(await refuse(idOf('calculate'))).toContain('called no model')
    expect(await refuse(idOf('ask_impure'))).toContain('is not pure')
    expect(await refuse(idOf('ask_with_files'))).toContain('uses the service files before it calls a model')
  })

  test('is refused where what it was made of is gone', async ({ database }) => {
    const id = idOf('planner', 3)
    expect((await readPrompt(id)).origin).toBe('as_sent')
    await database.query('DELETE FROM blob_uses WHERE session_id = $1', [session])
    expect(await refuse(id)).toMatch(/^no_prompt: what action \d+ sent is gone: [0-9a-f]{64}, [0-9a-f]{64}$/)
  })

  test('is not found for unknown numbers and other businesses', async ({ runtime }) => {
    const { token } = await runtime.admin.tokens.create(
      {},
      {
        business_id: unique('b'),
        label: 't',
        roles: ['read'],
      },
    )
    expect((await get(`/actions/${idOf('planner')}/prompt`, token)).status).toBe(404)
    expect(await refuse(999)).toContain('not_found')
    expect(await refuse(0)).toContain('invalid_request')
  })
})
