// backends: either
// tier: all
import { once } from 'node:events'
import { createServer, type IncomingMessage, request as sendRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'vitest'
import { adminToken, closing, runtimeTest } from '../support/integration-test.ts'
import { measureLongestTurn, measureTurnLimit } from '../support/longest-turn.ts'
import { openaiSettings } from '../support/registry.ts'
import { count, until } from '../support/runs.ts'

/**
 * Hostile answers on their whole way: through the planner, reflection, output and learning, into the log, the ledger and
 * the streams of followers. The database server is another process; embedded, its work is part of each turn.
 */

type Answer = readonly Uint8Array[]
/** The answers of a role, one after the other; the last one again and again. */
type Answers = Partial<Record<string, readonly Answer[]>>

const chunkBytes = 64 * 1024
const toAnswer = (text: string): Answer => {
  const bytes = Buffer.from(text)
  return Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, at) =>
    bytes.subarray(at * chunkBytes, (at + 1) * chunkBytes),
  )
}

/** A vendor whose answers are bytes that are there already: it computes next to nothing in the thread that is measured. */
const startHostileVendor = async () => {
  let answers: Answers = {}
  const roles: string[] = []
  const server = createServer(async (request, response) => {
    const role = String(request.headers['x-mason-role'])
    await once(request.resume(), 'end')
    const nth = roles.filter((one) => one === role).length
    roles.push(role)
    const list = answers[role] ?? [toAnswer(sayText('Done.'))]
    response.writeHead(200, { 'content-type': 'application/json' })
    for (const chunk of list[Math.min(nth, list.length - 1)] ?? []) {
      if (response.destroyed) return
      response.write(chunk)
      await nextTurn()
    }
    response.end()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    roles,
    answer(next: Answers): void {
      answers = next
      roles.length = 0
    },
    async close(): Promise<void> {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const complete = (message: object): string =>
  JSON.stringify({ choices: [{ index: 0, finish_reason: 'stop', message }] })
const sayText = (content: string): string => complete({ content })
const call = (name: string, args: unknown, id = 'c') => ({
  ...{ id, type: 'function' },
  function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
})
const makeCalls = (...tool_calls: object[]): string => complete({ content: '', tool_calls })
const stream = (delta: object, times: number): string =>
  `${`data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`.repeat(times)}data: [DONE]\n\n`

const list = <Item>(length: number, toItem: (at: number) => Item): Item[] =>
  Array.from({ length }, (_, at) => toItem(at))
const repeat = (unit: string, length: number): string => unit.repeat(Math.floor(length / unit.length))
const words = (length: number): string => repeat('lorem ipsum dolor ', length)
const toJson = (value: unknown): string => sayText(JSON.stringify(value))
const MiB = 1024 * 1024
/** Just under the limit of an answer's text. */
const longest = 3.9 * MiB

const sum = (at: number) => call('calculate', { expression: `${at}+1` }, `c${at}`)
const failing = makeCalls(call('calculate', { expression: 'bad(' }))
const toTodo = (at: number) => ({ id: `t${at}`, task: words(100) })
const structure = [{ id: 'a', expected: 'words', type: 'text' as const }]
const learned = {
  ...{ evidence: 'I live in Bern, and I walk.', stance: 'asserts', content: 'The user lives in Bern' },
  ...{ kind: 'fact', is_about_user: true, is_lasting: true, is_stated: true, is_new: true },
}

type Case = {
  says: Partial<Record<string, readonly string[]>>
  request?: object
  isLearned?: true
}

const cases: Record<string, Case> = {
  'what is loaded once': { says: {} },
  'a text of 3.9 MiB': { says: { planner: [sayText(words(longest))] } },
  'a text of marks, 3.9 MiB': { says: { planner: [sayText(repeat('<data-', longest))] } },
  'a stream of long texts, 8 MiB': { says: { planner: [stream({ content: words(64_000) }, 128)] } },
  'a stream of letters': { says: { planner: [stream({ content: '<' }, 5000)] } },
  'reasoning of 3.9 MiB beside a call': {
    says: {
      planner: [complete({ reasoning_content: words(longest), tool_calls: [sum(1)] }), sayText('Done.')],
    },
  },
  '900 calls and 999 todos, each named as done': {
    says: {
      planner: [
        makeCalls(call('update_todos', { todos: list(999, toTodo) }, 'u'), ...list(900, sum)),
        makeCalls(
          call('finish', {
            answer: 'Done.',
            todos: list(999, (at) => ({ id: `t${at}`, status: 'completed', reason: 'r' })),
          }),
        ),
      ],
    },
    request: { limits: { max_steps: 2000 } },
  },
  '1000 calls of tools with long names': {
    says: { planner: [makeCalls(...list(1000, (at) => call('x'.repeat(3900), '{}', `c${at}`)))] },
  },
  'arguments that are 600,000 deep': {
    says: { planner: [makeCalls(call('calculate', '{"a":'.repeat(600_000) + '}'.repeat(600_000)))] },
  },
  'unknown arguments, 60 calls with 5000 each': {
    says: {
      planner: [
        makeCalls(
          ...list(60, (at) =>
            call('calculate', Object.fromEntries(list(5000, (nth) => [`k${nth}`, 1])), `c${at}`),
          ),
        ),
      ],
    },
  },
  '20 changes of the plan with 900 todos each': {
    says: {
      planner: [
        makeCalls(
          ...list(20, (nth) =>
            call(
              'update_todos',
              { todos: list(900, (at) => ({ id: `${nth} ${at}`, task: 'x' })) },
              `u${nth}`,
            ),
          ),
        ),
      ],
    },
  },
  '900 todos of 4000 characters': {
    says: {
      planner: [
        makeCalls(
          call('update_todos', { todos: list(900, (at) => ({ id: `t${at}`, task: words(4000) })) }, 'u'),
          sum(1),
        ),
        sayText('Done.'),
      ],
    },
  },
  'a reflection of 3.9 MiB': {
    says: {
      planner: [failing, sayText('Done.')],
      reflection: [
        toJson({ reasoning: words(2 * MiB), is_sufficient: false, knowledge_gap: words(1.9 * MiB) }),
      ],
    },
  },
  'a structured answer of 3.9 MiB': {
    says: { output: [toJson({ a: words(longest) })] },
    request: { output: { structure } },
  },
  '5000 statements to learn': {
    says: { distill: [toJson({ memories: list(5000, () => learned) })] },
    request: { prompt: 'I live in Bern, and I walk. '.repeat(30_000) },
    isLearned: true,
  },
  'statements to learn of 3.9 MiB': {
    says: {
      distill: [toJson({ memories: list(20, () => ({ ...learned, content: repeat('123 ', 190_000) })) })],
    },
    request: { prompt: 'I live in Bern, and I walk. ' },
    isLearned: true,
  },
}

const test = runtimeTest
  .extend('hostile', { scope: 'file' }, closing(startHostileVendor))
  .extend('runtimeOptions', { scope: 'file' }, ({ hostile }) => ({
    models: null,
    memory: { everyMs: 20 },
    config: { openai: openaiSettings({ baseUrl: hostile.baseUrl }) },
  }))

/** Sends a request; resolves with the stream of its answer, which is read but not looked at. */
const follow = async (url: string, body?: object): Promise<string> => {
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
  const sent = sendRequest(url, { method: body ? 'POST' : 'GET', headers }).end(body && JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  response.on('data', (chunk: Buffer) => {
    if (text.length < 100_000) text += chunk.toString('latin1')
  })
  await once(response, 'end')
  expect(response.statusCode, text).toBeLessThan(300)
  return text
}

const isLinux = process.platform === 'linux'
const isServed = process.env.MASON_TEST_BACKEND === 'served'

test.runIf(isLinux && isServed).for(Object.entries(cases))(
  'no turn of the event loop takes 200 ms from the answer of a vendor to the followers of its run: %s',
  async ([name, { says, request, isLearned }], { server, hostile, elsewhere }) => {
    hostile.answer(
      Object.fromEntries(Object.entries(says).map(([role, texts = []]) => [role, texts.map(toAnswer)])),
    )
    const ms = await measureLongestTurn(async () => {
      const text = await follow(`${server.url}/v1/runs`, { prompt: 'hello', user_id: 'u1', ...request })
      await follow(`${server.url}/v1/runs/${JSON.parse(text).id}/events`)
      if (isLearned)
        await until('it is learned from', async () => (await count(elsewhere, 'distillations')) === 0)
    })
    if (name !== 'what is loaded once') expect(ms).toBeLessThan(measureTurnLimit())
  },
)
