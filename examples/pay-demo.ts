import { spawn } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createInterface as openPrompt } from 'node:readline/promises'
import { CompactSign } from 'jose'
import { runCommand } from '../src/cli/command-runner.ts'
import { exitCodes } from '../src/cli/errors.ts'
import { listenForInterrupt } from '../src/cli/interrupts.ts'
import { openTerminal, type Terminal } from '../src/cli/terminal.ts'
import { createClient } from '../src/client/index.ts'
import type { Environment } from '../src/infra/config/config.ts'
import { toPackagePath } from '../src/infra/lib/package-path.ts'
import type { PaymentTrail } from '../src/payments/ledger/payment-queries.ts'
import { startMerchant, startModel } from './pay-demo/shop.ts'
import { startMason } from './served-demo/processes.ts'

/** `npm run demo:pay`: an agent buys a coffee maker. Without a terminal the demo approves and answers itself. */

const createKey = (kid: string) => {
  const { privateKey: key, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { key, kid, jwk: publicKey.export({ format: 'jwk' }) }
}

/** The card provider of examples/card-provider, as a process with books of its own. */
const startProvider = async (books: string, env: NodeJS.ProcessEnv) => {
  const script = toPackagePath('examples', 'card-provider', 'server.ts')
  const args = [...process.execArgv, script, '--port', '0', '--books', books]
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit').then(() => {
    throw new Error('the card provider ended at its start')
  })
  const [url] = (await Promise.race([once(createInterface({ input: child.stdout }), 'line'), ended])) as [
    string,
  ]
  const close = async (): Promise<void> => {
    if (child.exitCode === null && child.kill()) await once(child, 'exit')
  }
  return { url, close }
}

/** A proxy's calls that the client does not have. */
const createProxy =
  (url: string, token: string) =>
  async <Body>(method: string, path: string, json?: object): Promise<Body> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await fetch(url + path, { method, headers, ...(json && { body: JSON.stringify(json) }) })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
    return (text === '' ? null : JSON.parse(text)) as Body
  }

/** Asks at the terminal; without one it says what it answers itself. */
const ask = async ({ out, canAsk }: Terminal, question: string, own: string): Promise<string> => {
  if (!canAsk) {
    out.write(`${question} ${own}   (no terminal: the demo answers itself)\n`)
    return own
  }
  const prompt = openPrompt({ input: process.stdin, output: out })
  try {
    return (await prompt.question(`${question} [${own}] `)).trim() || own
  } finally {
    prompt.close()
  }
}

const formatTrail = ({ payment, events, operations }: PaymentTrail, { colors }: Terminal): string => {
  const checks = events.flatMap(({ at, kind, detail }) => {
    const made = Array.isArray(detail.checks) ? (detail.checks as { check: string; key?: string }[]) : []
    const line = `  ${at.slice(11, 23)}  ${kind}`
    return [
      line,
      ...made.map(({ check, key }) => `                ${check}${key ? ` (key ${key.slice(0, 12)}…)` : ''}`),
    ]
  })
  const sent = operations.map(
    ({ kind, status, sends }) => `  ${kind}: ${status}, sent ${sends} time${sends === 1 ? '' : 's'}`,
  )
  return [colors.bold(`\nTrail of ${payment.id}: ${payment.status}`), ...checks, ...sent, ''].join('\n')
}

const demo = async (env: Environment): Promise<number> => {
  const terminal = openTerminal(env)
  const { out, colors } = terminal
  const folder = await mkdtemp(join(tmpdir(), 'mason-pay-demo-'))
  const interrupt = listenForInterrupt()
  const closers: (() => unknown)[] = [() => interrupt.stop()]
  try {
    const [merchantKey, surfaceKey] = [createKey('shop-1'), createKey('phone-1')]
    const provider = await startProvider(join(folder, 'books.jsonl'), {
      ...process.env,
      CARD_PROVIDER_TEST_TOKEN: 'demo',
    })
    closers.push(provider.close)
    // whom mandates are for, and who signs receipts; nothing listens there
    const url = 'https://mason.example'
    const merchant = await startMerchant('Coffee & Co', 'https://coffee.example', url, merchantKey)
    closers.push(merchant.close)
    const model = await startModel(merchant.url)
    closers.push(model.close)
    out.write(
      `${colors.bold('Mason payment demo')}: Mason embedded, a merchant, a card provider and a scripted model\n`,
    )
    const token = randomBytes(24).toString('hex')
    const { PATH = '', HOME = '' } = process.env
    const settings = { PATH, HOME, DATA_DIR: folder, MASON_ADMIN_TOKEN: token, MASON_PUBLIC_URL: url }
    const models = { OPENAI_BASE_URL: `${model.url}/v1`, OPENAI_API_KEY: 'none', OPENAI_MODEL: 'scripted' }
    const mason = await startMason(
      ['serve', '--port', '0'],
      { ...settings, ...models },
      /listens on (http\S+)/,
    )
    closers.push(() => mason.stop())
    const api = mason.said[1] ?? ''
    const call = createProxy(api, token)

    const trust = (issuer: string, { kid, jwk }: { kid: string; jwk: object }, role: string) =>
      call('POST', '/admin/v1/trust', { issuer, kid, roles: [role], jwk })
    await trust('https://coffee.example', merchantKey, 'merchant')
    await trust('https://phone.example', surfaceKey, 'trusted-surface')
    const { keys } = await call<{ keys: Record<string, string>[] }>('GET', '/.well-known/ap2-jwks.json')
    for (const { kid = '', kty, crv, x, y } of keys)
      await trust(url, { kid, jwk: { kty, crv, x, y } }, 'trusted-surface')
    const secrets = {
      api_key: 'sk_test_card_provider',
      webhook_secret: 'whsec_bWFzb24tY2FyZC1wcm92aWRlci10ZXN0LXNlY3JldA==',
    }
    const row = { name: 'cards', base_url: provider.url, allow_private: true, test: true, ...secrets }
    await call('POST', '/admin/v1/providers', row)
    const host = { host: new URL(merchant.url).host, methods: ['GET'], allow_private: true }
    await call('PATCH', '/admin/v1/businesses/default', { http_hosts: [host] })

    const prompt = 'Buy me a coffee maker from Coffee & Co.'
    out.write(`\n${colors.bold('you')}      ${prompt}\n`)
    const client = createClient({ url: api, token })
    const run = await client.submit({ prompt, user_id: 'ann' })
    let paymentId = ''
    for await (const { event, data } of client.events({ run_id: run.id }, { signal: interrupt.signal })) {
      if (event === 'action') out.write(colors.dim(`  ${data.node.padEnd(28)} ${data.summary}\n`))
      if (event === 'consent_required') {
        paymentId = data.payment_id
        const path = `/v1/payments/${paymentId}/consent`
        const { content, facts } = await call<{ content: string; facts: Record<string, unknown> }>(
          'GET',
          path,
        )
        out.write(
          `\n${colors.bold('approve')}  ${facts.total} to ${facts.payee} (${facts.payee_issuer}), refund within ${facts.refund_days} days\n`,
        )
        const isYes = /^y/i.test(await ask(terminal, 'Approve with your phone?', 'yes'))
        const header = { alg: 'ES256', kid: surfaceKey.kid }
        const sign = () =>
          new CompactSign(Buffer.from(content)).setProtectedHeader(header).sign(surfaceKey.key)
        await call('POST', path, isYes ? { signature: await sign() } : { refuse: true })
      }
      if (event === 'done') out.write(`\n${colors.bold('mason')}    ${data.answer}\n`)
      if (event === 'input_required') {
        const own = data.schema.format === 'payment-token' ? 'tok_challenge' : '123456'
        await client.answer(run.id, data.id, await ask(terminal, data.question, own))
      }
    }
    if (paymentId === '') return exitCodes.failed
    const trail = await call<PaymentTrail>('GET', `/v1/payments/${paymentId}`)
    out.write(formatTrail(trail, terminal))
    const headers = { authorization: 'Bearer demo' }
    const books = await (await fetch(`${provider.url}/test/books`, { headers })).json()
    for (const { status, amount, currency, captured } of (books as { payments: Record<string, unknown>[] })
      .payments)
      out.write(
        `Books of the card provider: ${status}, ${captured} of ${amount} minor units of ${currency}\n`,
      )
    return trail.payment.status === 'succeeded' ? exitCodes.done : exitCodes.failed
  } finally {
    for (const close of closers.reverse()) await close()
    await rm(folder, { recursive: true, force: true })
  }
}

await runCommand((env) => demo(env()))
