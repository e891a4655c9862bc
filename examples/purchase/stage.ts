import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface as openPrompt } from 'node:readline/promises'
import { CompactSign } from 'jose'
import { exitCodes } from '../../src/app/cli/errors.ts'
import { listenForInterrupt } from '../../src/app/cli/interrupts.ts'
import { openTerminal, type Terminal } from '../../src/app/cli/terminal.ts'
import { createClient } from '../../src/client/index.ts'
import type { PaymentTrail } from '../../src/features/payments/ledger/payment-queries.ts'
import type { Environment } from '../../src/infra/config/config.ts'
import { isMasonError } from '../../src/state/errors.ts'
import type { RunView } from '../../src/state/run-view.ts'
import { startMason } from '../served-demo/processes.ts'

/** What `npm run demo:pay` and `npm run demo:buy` share: Mason embedded, the phone of a user, questions and the trail. */

/** A key pair on P-256: to sign with, and the public JWK. */
export const createKey = (kid: string) => {
  const { privateKey: key, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { key, kid, jwk: publicKey.export({ format: 'jwk' }) }
}
/** See `createKey`. */
export type Key = ReturnType<typeof createKey>

/** Whom mandates are for, and who signs receipts; nothing listens there. */
export const publicUrl = 'https://mason.example'

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

/** The settings of a Mason embedded in a folder, which chooses its model by further ones. */
export const toSettings = (folder: string, token: string): Record<string, string> => {
  const { PATH = '', HOME = '' } = process.env
  return { PATH, HOME, DATA_DIR: folder, MASON_ADMIN_TOKEN: token, MASON_PUBLIC_URL: publicUrl }
}

/** Has a new Mason trust the user's phone and its own executor. `keys` are the executor's, which others must trust. */
export const setUpTrust = async (url: string, token: string, phone: Key) => {
  const call = createProxy(url, token)
  const trust = (issuer: string, { kid, jwk }: { kid: string; jwk: object }, role: string) =>
    call('POST', '/admin/v1/trust', { issuer, kid, roles: [role], jwk })
  await trust('https://phone.example', phone, 'trusted-surface')
  const found = await call<{ keys: Record<string, string>[] }>('GET', '/.well-known/ap2-jwks.json')
  const keys = found.keys.map(({ kid = '', kty = '', crv = '', x = '', y = '' }) => ({
    ...{ issuer: publicUrl, kid, roles: ['trusted-surface'], jwk: { kty, crv, x, y } },
  }))
  for (const key of keys) await trust(key.issuer, key, 'trusted-surface')
  return { call, trust, keys }
}

const openMason = async (folder: string, phone: Key, settings: Record<string, string>) => {
  const token = randomBytes(24).toString('hex')
  const env = { ...toSettings(folder, token), ...settings }
  const mason = await startMason(['serve', '--port', '0'], env, /listens on (http\S+)/)
  const url = mason.said[1] ?? ''
  const set = await setUpTrust(url, token, phone)
  return { ...set, client: createClient({ url, token }), stop: () => mason.stop() }
}
/** A Mason that runs, and what its proxy calls. */
export type Mason = Awaited<ReturnType<typeof openMason>>

/** What a demo works with. Everything that `close` was given is closed at its end, the latest first. */
export type Stage = {
  folder: string
  terminal: Terminal
  close(work: () => unknown): void
  openMason(settings: Record<string, string>): Promise<Mason>
  /** Submits a prompt of the user, and follows its run. */
  buy(mason: Mason, prompt: string, answer: Answers, scenario?: string): Promise<boolean>
  /** Shows a run until its end, with the user at the terminal, and then the trail of its payment. Whether it was paid. */
  follow(mason: Mason, runId: string, answer: Answers): Promise<boolean>
}
/** What the demo answers to a question itself. */
type Answers = (schema: { format?: unknown }, options: readonly string[]) => string
type Question = NonNullable<RunView['input_request']>
type Facts = Record<string, unknown> & { limits?: { name: string; text: string }[] }

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

/** Asks the user until their answer is accepted: a question may take nothing but one of its options, which have numbers then. */
const askUser = async (
  terminal: Terminal,
  { client }: Mason,
  runId: string,
  asked: Question,
  own: string,
) => {
  const { id, schema, options = [], question } = asked
  const listed =
    schema.enum && terminal.canAsk ? options.map((one, at) => `\n${at + 1}. ${one}`).join('') : ''
  const shown = listed ? `${question}${listed}\n` : question
  for (;;) {
    const text = await ask(terminal, `\n${shown}`, own)
    const isTaken = await client.answer(runId, id, (listed && options[Number(text) - 1]) || text).then(
      () => true,
      (error: unknown) => {
        if (!terminal.canAsk || !isMasonError(error, 'invalid_request')) throw error
        terminal.out.write(`That is not one of the answers: ${error.message}\n`)
        return false
      },
    )
    if (isTaken) return
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

/** The phone's signature of the bytes of a consent. */
export const signContent = (content: string, { key, kid }: Key): Promise<string> =>
  new CompactSign(Buffer.from(content)).setProtectedHeader({ alg: 'ES256', kid }).sign(key)

/** Shows the user what they approve, and signs it on their phone. */
const approve = async (terminal: Terminal, { call }: Mason, phone: Key, paymentId: string): Promise<void> => {
  const path = `/v1/payments/${paymentId}/consent`
  const { content, facts } = await call<{ content: string; facts: Facts }>('GET', path)
  const refund = facts.refund_days === null ? '' : `, refund within ${facts.refund_days} days`
  const isNamed = String(facts.payee).includes(String(facts.payee_issuer))
  const shown =
    facts.limits?.map(({ name, text }) => `\n  ${name}: ${text}`).join('') ??
    `${facts.total} to ${facts.payee}${isNamed ? '' : ` (${facts.payee_issuer})`}${refund}`
  terminal.out.write(`\n${terminal.colors.bold('approve')}  ${shown}\n`)
  const isYes = /^y/i.test(await ask(terminal, 'Approve with your phone?', 'yes'))
  await call('POST', path, isYes ? { signature: await signContent(content, phone) } : { refuse: true })
}

/** Runs a demo in a folder of its own. */
export const openStage = async (
  env: Environment,
  demo: (stage: Stage) => Promise<boolean>,
): Promise<number> => {
  const terminal = openTerminal(env)
  const { out, colors } = terminal
  const folder = await mkdtemp(join(tmpdir(), 'mason-demo-'))
  const interrupt = listenForInterrupt()
  const phone = createKey('phone-1')
  const closers: (() => unknown)[] = [() => interrupt.stop()]
  const stage: Stage = {
    ...{ folder, terminal, close: (work) => void closers.push(work) },
    async openMason(settings) {
      const mason = await openMason(folder, phone, settings)
      closers.push(mason.stop)
      return mason
    },
    async buy(mason, prompt, answer, scenario) {
      out.write(`\n${colors.bold('you')}      ${prompt}\n`)
      const run = await mason.client.submit({ prompt, user_id: 'ann', ...(scenario && { scenario }) })
      return stage.follow(mason, run.id, answer)
    },
    async follow(mason, runId, answer) {
      const { client, call } = mason
      let paymentId = ''
      for await (const { event, data } of client.events({ run_id: runId }, { signal: interrupt.signal })) {
        if (event === 'action') {
          out.write(colors.dim(`  ${data.node.padEnd(28)} ${data.summary}\n`))
          // what the user refused was never ordered, and has no trail
          if (data.node === 'check_receipt') paymentId = String(data.result.payment_id)
        }
        if (event === 'consent_required') await approve(terminal, mason, phone, data.payment_id)
        if (event === 'input_required')
          await askUser(terminal, mason, runId, data, answer(data.schema, data.options))
        if (event === 'done') out.write(`\n${colors.bold('mason')}    ${data.answer}\n`)
      }
      if (paymentId === '') return false
      const trail = await call<PaymentTrail>('GET', `/v1/payments/${paymentId}`)
      out.write(formatTrail(trail, terminal))
      return trail.payment.status === 'succeeded'
    },
  }
  try {
    return (await demo(stage)) ? exitCodes.done : exitCodes.failed
  } finally {
    for (const close of closers.reverse()) await close()
    await rm(folder, { recursive: true, force: true })
  }
}
