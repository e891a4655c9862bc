import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Running, runCli, startCli } from '../support/cli.ts'
import { callUrl } from '../support/http.ts'

let cwd: string
let server: Running
let url: string

beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'mason-console-'))
  server = startCli(['serve', '--port', '0'], { cwd, env: { LOG_LEVEL: 'error' } })
  const [, first = '', page = ''] = await server.says(/listens on (http:\S+)[\s\S]+console\s+(http:\S+)/)
  expect(page).toBe(`${first}/console`)
  url = first
})
afterAll(async () => {
  server.kill('SIGTERM')
  await server.ended
  await rm(cwd, { recursive: true, force: true })
})

test('mason console prints the address of the server on this data folder, which signs in once', async () => {
  const { code, stdout, stderr } = await runCli(['console'], { cwd })
  expect([code, stderr]).toEqual([0, expect.stringContaining('signs in once, within a minute')])
  const [, page, secret] = /^(\S+)\/console#code=([\w-]{43})\n$/.exec(stdout) ?? []
  expect(page).toBe(url)
  const exchange = () =>
    callUrl(`${url}/console/session`, 'POST', {
      ...{ json: { code: secret }, headers: { 'sec-fetch-site': 'same-origin' } },
    })
  expect((await exchange()).body).toMatchObject({ signed_in: true, admin: true })
  expect((await exchange()).status).toBe(401)
})

test('mason console prints the address that was named, or the public one, and refuses a token that is none', async () => {
  const target = ['console', '--url', url, '--token']
  const refused = await runCli([...target, 'wrong'], { cwd })
  expect([refused.code, refused.stdout, refused.stderr]).toEqual([
    1,
    '',
    expect.stringMatching(/unknown[\s\S]+-> /),
  ])
  const { stdout: token } = await runCli(['tokens', 'create', '--name', 'Ann', '--role', 'read'], { cwd })
  const named = await runCli([...target, token.trim()], { cwd })
  expect([named.code, named.stdout.startsWith(`${url}/console#code=`)]).toEqual([0, true])
  const env = { MASON_PUBLIC_URL: 'https://example.com/mason' }
  const { code, stdout } = await runCli(['console'], { cwd, env })
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/^https:\/\/example\.com\/mason\/console#code=[\w-]{43}\n$/),
  ])
})

test('mason console says how to start a server where none runs', async () => {
  const { code, stderr } = await runCli(['console'], { cwd, env: { DATA_DIR: 'other' } })
  expect([code, stderr]).toEqual([1, expect.stringMatching(/no server is running[\s\S]+-> start `.*serve`/)])
})
