import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { body, eventually, serve, serveGuarded } from './test-server.ts'

describe('the log', () => {
  it('the log has one line per request, with neither body nor token', async () => {
    const lines: string[] = []
    const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
    const { server, fake } = await serveGuarded({ logger })
    fake.failing.set('cancel', new Error('broken'))
    const headers = { 'x-request-id': 'id-1' }
    await server.call('POST', '/v1/runs?business_id=acme', {
      json: { ...body, prompt: 'private words' },
      token: 'all',
      headers,
    })
    await server.call('POST', '/v1/runs/run_1/cancel', { token: 'all', headers })
    await eventually(() => lines.filter((line) => line.includes('"answered"')).length === 2)
    const answered = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'answered')
    expect(answered[0]).toMatchObject({ request_id: 'id-1', method: 'POST', path: '/v1/runs', status: 202 })
    expect(lines.join('')).toContain('broken')
    expect(lines.join('')).not.toMatch(/private words|Bearer|"all"/)
  })
})

it('a request in progress is finished before the server closes, and a new one gets 503', async () => {
  const { server, fake } = await serve()
  let finish = (): void => undefined
  fake.gate = new Promise((resolve) => {
    finish = resolve
  })
  const slow = server.call('POST', '/v1/runs', { json: body })
  await eventually(() => fake.calls.length === 1)
  const closed = server.close()
  await eventually(async () => (await server.call('GET', '/healthz')).status === 503)
  finish()
  expect((await slow).status).toBe(202)
  await closed
})
