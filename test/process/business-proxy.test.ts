// tier: all
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { jsonLines, type Running, startCli } from '../support/cli.ts'
import { dropKeys } from '../support/drop-keys.ts'
import { databaseSettings, migrateServed } from '../support/served-logins.ts'
import { dropDatabase, runAsAdmin, urlOf } from '../support/setup-served.ts'

const servers = process.env.TEST_DATABASE_URL && process.env.TEST_REDIS_URL

/** Two products with shapes of their own, as processes of their own, beside a real Mason. */

let cwd: string
beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'mason-proxy-'))
})
afterAll(() => rm(cwd, { recursive: true, force: true }))

const startServe = async (env: Record<string, string>): Promise<{ mason: Running; url: string }> => {
  const mason = startCli(['serve', '--port', '0'], {
    cwd,
    env: { MASON_AUTH: 'off', LOG_LEVEL: 'error', ...env },
  })
  const [, url = ''] = await mason.says(/listens on (http:\S+)/)
  return { mason, url }
}

const stop = async (...processes: Running[]): Promise<void> => {
  for (const each of processes) each.kill('SIGTERM')
  await Promise.all(processes.map(({ ended }) => ended))
}

test("the shop's form becomes a run over HTTP, and its answer a page; a form sent twice is one run", async () => {
  const { mason, url } = await startServe({})
  const script = 'examples/business-proxy/shop.ts'
  const shop = startCli([], { cwd, env: { MASON_URL: url, SHOP_PORT: '0' }, script })
  const [, page = ''] = await shop.says(/form: (http:\S+)/)
  expect(await (await fetch(page)).text()).toContain('name="form_id"')

  const orders_csv = 'id,status\n1,returned\n2,completed\n3,returned\n'
  const form = {
    form_id: 'f1',
    order: 'SO-1',
    email: 'ann@example.org',
    question: 'How many are returned?',
    orders_csv,
  }
  for (let sent = 1; sent <= 2; sent++) {
    const answer = await fetch(`${page}/ask`, { method: 'POST', body: new URLSearchParams(form) })
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('2')])
  }
  const runs = await (await fetch(`${url}/v1/runs?session_id=shop-SO-1-ann@example.org`)).json()
  expect(runs).toMatchObject({
    data: [{ status: 'completed', metadata: { product: 'shop', order: 'SO-1' } }],
  })
  await stop(shop, mason)
})

describe.skipIf(!servers)('with a queue that both share (needs TEST_DATABASE_URL and TEST_REDIS_URL)', () => {
  const name = `mason_proxy_${randomBytes(4).toString('hex')}`
  beforeAll(async () => {
    await runAsAdmin(`CREATE DATABASE ${name}`)
    await migrateServed(urlOf(name))
  })
  afterAll(() => Promise.all([dropDatabase(name), dropKeys(process.env.TEST_REDIS_URL ?? '', name)]))

  test("the chat's messages go straight into the queue, and its replies come back in order", async () => {
    const queue = { REDIS_URL: process.env.TEST_REDIS_URL ?? '', MASON_QUEUE_PREFIX: name }
    const MASON_MASTER_KEY = randomBytes(32).toString('base64')
    const { mason, url } = await startServe({ ...databaseSettings(urlOf(name)), ...queue, MASON_MASTER_KEY })
    const room = `room-${name}`
    const messages = [
      { msg_id: `${name}-1`, room, from: 'ann', text: 'What is 12 * 22.75?' },
      { msg_id: `${name}-2`, room, from: 'ann', text: 'What is 10% of 300?' },
      { msg_id: `${name}-2`, room, from: 'ann', text: 'What is 10% of 300?' },
    ]
    const chat = startCli([], {
      cwd,
      env: { MASON_URL: url, ...queue },
      script: 'examples/business-proxy/chat.ts',
      input: messages.map((message) => `${JSON.stringify(message)}\n`).join(''),
    })
    const { code, stdout, stderr } = await chat.ended
    expect([code, stderr]).toEqual([0, ''])
    expect(jsonLines(stdout)).toMatchObject([
      { reply_to: `${name}-1`, text: expect.stringContaining('273') },
      { reply_to: `${name}-2`, text: expect.stringContaining('30') },
      { reply_to: `${name}-2`, text: expect.stringContaining('30') },
    ])
    const session = await (await fetch(`${url}/v1/sessions/chat-${room}-ann`)).json()
    expect(session).toMatchObject({ turns: [{ turn: 1 }, { turn: 2 }] })
    await stop(mason)
  })
})
