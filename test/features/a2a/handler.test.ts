import { setImmediate } from 'node:timers/promises'
import { Role, TaskState } from '@a2a-js/sdk'
import { expect, test } from 'vitest'
import { reportError, toA2AError } from '../../../src/features/a2a/server/errors.ts'
import { type AgentCall, createRequestHandler } from '../../../src/features/a2a/server/handler.ts'
import { toRunRequest } from '../../../src/features/a2a/server/messages.ts'
import { sha256 } from '../../../src/infra/lib/ids.ts'
import type { MasonError } from '../../../src/state/errors.ts'
import { createInvalidRequest } from '../../../src/state/resource-schema.ts'
import type { Json } from '../../../src/state/runtime-state.ts'

const day = 24 * 3600 * 1000
type Content = { text: string } | { data: Json }

/** The handler of a business whose run of each message ended a day after the one before; it counts the blobs it opens. */
const openHandler = async (messages: Content[][]) => {
  const blobs = new Map<string, Buffer>()
  const opened: string[] = []
  const made = messages.map(async (contents, at) => {
    const parts = contents.map((content) => ({
      content:
        'text' in content
          ? { $case: 'text' as const, value: content.text }
          : { $case: 'data' as const, value: content.data },
      ...{ metadata: undefined, filename: '', mediaType: '' },
    }))
    for (const content of contents)
      if ('data' in content) {
        const text = JSON.stringify(content.data)
        blobs.set(sha256(text), Buffer.from(text))
      }
    const message = {
      ...{ messageId: `m-${at}`, contextId: 'c', taskId: '', role: Role.ROLE_USER, parts },
      ...{ metadata: undefined, extensions: [], referenceTaskIds: [] },
    }
    const request = await toRunRequest(message, { caller: 'ann', key: `k-${at}`, extensions: [] })
    return {
      ...{ id: `run-${at}`, status: 'completed', answer: 'Done.', output_structure: [] },
      ...{ prompt: request.prompt, metadata: request.metadata, session_id: request.session_id },
      ended_at: new Date(at * day).toISOString(),
    }
  })
  const runs = await Promise.all(made)
  const business = {
    runs: async ({ status_from = 0 }) => ({
      data: runs.filter(({ ended_at }) => Date.parse(ended_at) >= status_from),
      next_cursor: null,
    }),
    countRuns: async () => runs.length,
    run: async (id: string) => runs.find((run) => run.id === id) ?? null,
    async blob(_id: string, hash: string) {
      opened.push(hash)
      const bytes = blobs.get(hash)
      return bytes
        ? {
            bytes: bytes.length,
            chunks: (async function* () {
              yield bytes
            })(),
          }
        : null
    },
  }
  const call = {
    business,
    listAnswers: async () => [],
    caller: 'ann',
    card: {},
    onError: (error: unknown) => {
      throw error
    },
  }
  const handler = createRequestHandler(call as never as AgentCall, '1.0')
  const list = async (statusTimestampAfter?: string) => {
    const filter = { contextId: '', pageSize: 100, pageToken: '', status: TaskState.TASK_STATE_UNSPECIFIED }
    const { tasks } = await handler.listTasks(
      { ...filter, tenant: '', historyLength: undefined, statusTimestampAfter, includeArtifacts: false },
      {} as never,
    )
    return tasks.map(({ history }) => history[0]?.parts.map(({ content }) => content?.value))
  }
  const get = async (id: string) => {
    const task = await handler.getTask({ tenant: '', id, historyLength: undefined }, {} as never)
    return task.history[0]?.parts.map(({ content }) => content?.value)
  }
  return { get, list, opened, blobs, handler, call: call as never as AgentCall }
}

const leftOut = expect.stringContaining('data left out')
/** Data whose JSON has so many bytes. */
const dataOf = (bytes: number, letter: string): Json => ({ x: letter.repeat(bytes - 8) })

test('a task has 256 KB of data in a response; what is beyond them is said and not opened', async () => {
  const [half, rest, more] = [dataOf(128 * 1024, 'a'), dataOf(128 * 1024, 'b'), dataOf(20, 'c')]
  const large = dataOf(256 * 1024 + 1, 'd')
  const { get, opened } = await openHandler([
    [{ data: half }, { text: 'Hello' }, { data: rest }, { data: more }],
    [{ data: large }, { data: more }],
  ])
  expect(await get('run-0')).toEqual([half, 'Hello', rest, leftOut])
  expect(opened).toHaveLength(2)
  expect(await get('run-1')).toEqual([leftOut, leftOut])
  expect(opened).toHaveLength(3)
})

test('a list of tasks has 1 MB of data', async () => {
  const data = dataOf(200 * 1024, 'a')
  const { list, opened } = await openHandler(Array.from({ length: 8 }, () => [{ data }]))
  expect(await list()).toEqual([...Array(5).fill([data]), ...Array(3).fill([leftOut])])
  expect(opened).toHaveLength(6)
})

test('a list opens no data of tasks that its time leaves out', async () => {
  const messages = Array.from({ length: 5 }, (_, at) => [{ data: { at } }])
  const { list, opened } = await openHandler(messages)
  expect(await list(new Date(3 * day).toISOString())).toEqual([[{ at: 3 }], [{ at: 4 }]])
  expect(opened).toHaveLength(2)
})

test('equal data are in the history as often as they were sent; where they are gone it has the prompt', async () => {
  const data = { risk_data: 'x' }
  const { get, blobs } = await openHandler([[{ data }, { text: 'one' }, { text: 'two' }, { data }]])
  expect(await get('run-0')).toEqual([data, 'one\n\ntwo', data])
  const bare = await openHandler([[{ data }]])
  bare.blobs.clear()
  blobs.clear()
  expect(await get('run-0')).toEqual(['one\n\ntwo'])
  expect(await bare.get('run-0')).toEqual(['risk_data'])
})

test('a stream or a list whose historyLength is no whole number is refused', async () => {
  const { handler } = await openHandler([])
  const listed = handler.listTasks({ historyLength: -1 } as never, {} as never)
  await expect(listed).rejects.toThrow('historyLength must be a whole number')
  for (const historyLength of [-1, 1.5, Number.NaN]) {
    const events = handler.sendMessageStream({ configuration: { historyLength } } as never, {} as never)
    await expect(events.next()).rejects.toThrow('historyLength must be a whole number')
  }
})

test('an error of a page or a push names the field of the protocol, and what to do', () => {
  const toMessage = (error: MasonError) => toA2AError(error)?.message
  const cursor = { pointer: '/cursor', detail: 'must be the next_cursor of an earlier response' }
  expect(toMessage(createInvalidRequest([cursor], 'leave cursor out'))).toBe(
    'pageToken must be the nextPageToken of an earlier response',
  )
  const url = { pointer: '/url', detail: 'is not an http or https address' }
  expect(toMessage(createInvalidRequest([url], 'use a public address'))).toBe(
    'url: is not an http or https address; use a public address',
  )
})

test('what the SDK fails at is the request before the handler has answered, and our response after it', async () => {
  const { get, call } = await openHandler([[{ text: 'Hello' }]])
  const errors: string[] = []
  const report = (name: string) => (error: unknown) => errors.push(`${name}: ${(error as Error).message}`)
  Object.assign(call, { onMistyped: report('request'), onError: report('response') })
  reportError(call, new TypeError('one'))
  await get('run-0')
  reportError(call, new TypeError('two'))
  expect(errors).toEqual(['request: one', 'response: two'])
})

test('each data part of a message is read in a turn of the event loop of its own', async () => {
  let turns = 0
  let isOver = false
  const count = async (): Promise<void> => {
    for (; !isOver; turns++) await setImmediate()
  }
  const counted = count()
  await openHandler([Array.from({ length: 20 }, (_, at) => ({ data: { at } }))])
  isOver = true
  await counted
  expect(turns).toBeGreaterThan(20)
})
