import { describe, expect, it } from 'vitest'
import { MasonError } from '../../../src/state/errors.ts'
import { serve } from './test-server.ts'

describe('health', () => {
  it('GET /healthz responds while the process is alive', async () => {
    const { server } = await serve()
    expect(await server.call('GET', '/healthz')).toMatchObject({ status: 200, body: { ok: true } })
  })

  it('GET /readyz reports readiness, or the checks that fail', async () => {
    const { server, fake } = await serve()
    expect(await server.call('GET', '/readyz')).toMatchObject({ status: 200, body: fake.health })
    fake.health = { ok: false, checks: { queue: { ok: false, error: 'no answer' } } }
    expect(await server.call('GET', '/readyz')).toMatchObject({ status: 503, body: fake.health })
    fake.failing.set('health', new Error('secret'))
    const reply = await server.call('GET', '/readyz')
    expect([reply.status, reply.body.ok]).toEqual([503, false])
    expect(reply.text).not.toContain('secret')
  })
})

describe('metrics', () => {
  it('metrics count requests by route template, runs by status and the process', async () => {
    const { server } = await serve()
    await server.call('GET', '/v1/runs/one')
    await server.call('GET', '/v1/runs/two')
    await server.call('GET', '/no/such/path')
    const { text, headers } = await server.call('GET', '/metrics')
    expect(headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
    expect(text).toContain(
      'mason_http_request_duration_seconds_count{route="/v1/runs/:id",method="GET",status="404"} 2',
    )
    expect(text).toContain(
      'mason_http_request_duration_seconds_count{route="unknown",method="GET",status="404"} 1',
    )
    for (const line of [
      'mason_runs{status="queued"} 3',
      'mason_runs_ready 7',
      'mason_runs_ready_oldest_seconds 8.5',
      'mason_workers 4',
      'mason_outbox 5',
      'mason_stats_up 1',
    ])
      expect(text).toContain(line)
    expect(text).toContain('mason_process_cpu_seconds_total')
    const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1])
    expect(names.filter((name) => !name?.startsWith('mason_'))).toEqual([])
  })

  it('metrics are available while the runtime cannot count', async () => {
    const { server, fake } = await serve()
    fake.failing.set('stats', new MasonError('database_unavailable', 'away'))
    const reply = await server.call('GET', '/metrics')
    expect(reply.status).toBe(200)
    expect(reply.text).toContain('mason_stats_up 0')
    expect(reply.text).not.toContain('mason_runs{')
  })
})
