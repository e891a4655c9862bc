import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { openHttpGateway } from '../../../src/app/cli/http-gateway.ts'
import { isMasonError } from '../../../src/state/errors.ts'
import type { RunEvent } from '../../../src/state/run-view.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

let server: Server | undefined
afterEach(() => {
  server?.close()
  server?.closeAllConnections()
})

const serve = async (handler: Handler): Promise<string> => {
  server = createServer(handler)
  await new Promise<void>((resolve) => void server?.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const run = { id: 'run_1', session_id: 'ses_1', turn: 1, status: 'queued' }
const action = (id: number): string => `id: ${id}\nevent: action\ndata: {"id": ${id}, "node": "planner"}\n\n`
const done = `event: done\ndata: {"id": "run_1", "status": "completed"}\n\n`

const submitted = (response: ServerResponse): void => {
  response.writeHead(202, { 'content-type': 'application/json' }).end(JSON.stringify(run))
}
const problem = (response: ServerResponse, status: number, body: object): void => {
  response.writeHead(status, { 'content-type': 'application/problem+json' }).end(JSON.stringify(body))
}

const collect = async (events: AsyncIterable<RunEvent>): Promise<string[]> => {
  const seen: string[] = []
  for await (const event of events) seen.push(`${event.event} ${'id' in event ? event.id : ''}`.trim())
  return seen
}

const follow = async (url: string, notes: string[] = []): Promise<string[]> => {
  const gateway = openHttpGateway({ url, token: 'tok' }, (line) => notes.push(line))
  const followed = await gateway.submit({ prompt: 'p', user_id: 'u' })
  return collect(followed.events(new AbortController().signal))
}

describe('following a run over HTTP', () => {
  test('goes on after the last action it had when the connection breaks, with none lost and none twice', async () => {
    const asked: (string | undefined)[] = []
    const notes: string[] = []
    const url = await serve((request, response) => {
      if (request.method === 'POST') return submitted(response)
      asked.push(request.headers['last-event-id'] as string | undefined)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      if (asked.length === 1) {
        // the connection is cut in the middle of an event
        response.write(`: hello\n\n${action(1)}${action(2)}id: 3\nevent: act`, () => response.destroy())
      } else if (asked.length === 2) response.end(action(2) + action(3))
      else response.end(action(4) + done)
    })
    expect(await follow(url, notes)).toEqual(['action 1', 'action 2', 'action 3', 'action 4', 'done'])
    expect(asked).toEqual([undefined, '2', '3'])
    expect(notes).toEqual([
      'connection lost, reconnecting …',
      'reconnected',
      'connection lost, reconnecting …',
      'reconnected',
    ])
  })

  test('submits again with the same key when the first answer is lost', async () => {
    const keys: (string | string[] | undefined)[] = []
    const url = await serve((request, response) => {
      if (request.method !== 'POST') return void response.end(done)
      keys.push(request.headers['idempotency-key'])
      if (keys.length === 1) return void response.destroy()
      submitted(response)
    })
    expect(await follow(url)).toEqual(['done'])
    expect(keys).toHaveLength(2)
    expect(keys[0]).toBe(keys[1])
  })

  test('gives up at once when the server refuses, with its code and its errors', async () => {
    const errors = [{ pointer: '/prompt', detail: 'is empty' }]
    const url = await serve((_request, response) =>
      problem(response, 422, {
        code: 'invalid_request',
        title: 'Invalid',
        detail: 'it is invalid',
        errors,
      }),
    )
    const error = await follow(url).catch((reason: unknown) => reason)
    expect(isMasonError(error, 'invalid_request') && [error.message, error.detail]).toEqual([
      'it is invalid',
      { errors },
    ])
  })

  test('treats a cancel of a run that has ended as done', async () => {
    const url = await serve((request, response) =>
      request.url === '/v1/runs'
        ? submitted(response)
        : problem(response, 409, { code: 'run_ended', title: 'Ended' }),
    )
    const followed = await openHttpGateway({ url, token: null }, () => {}).submit({
      prompt: 'p',
      user_id: 'u',
    })
    await expect(followed.cancel('why not')).resolves.toBeUndefined()
    await expect(followed.answer('inp_1', 'yes')).rejects.toMatchObject({ code: 'run_ended' })
  })
})
