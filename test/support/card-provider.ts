import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Payment } from '../../examples/card-provider/books.ts'
import { freePort } from '../../examples/free-port.ts'
import type { ProviderSecrets, ProviderSettings } from '../../src/features/payments/providers/provider.ts'
import { scriptFlags } from './script-flags.ts'

const script = join(import.meta.dirname, '..', '..', 'examples', 'card-provider', 'server.ts')
const testToken = 'test-token-of-the-card-provider'

/** What Mason must know of the example provider. */
export const cardSecrets: ProviderSecrets = {
  api_key: 'sk_test_of_the_tests',
  webhook_secret: `whsec_${Buffer.from('the webhook secret of the tests').toString('base64')}`,
}

/** Starts `examples/card-provider` as a process of its own. `settings` are those of its README; it keeps its books over `restart`. */
export const startCardProvider = async (settings: Record<string, unknown> = {}) => {
  const folder = mkdtempSync(join(tmpdir(), 'mason-card-provider-'))
  const books = join(folder, 'books.jsonl')
  const env = {
    ...process.env,
    CARD_PROVIDER_API_KEY: cardSecrets.api_key,
    CARD_PROVIDER_WEBHOOK_SECRET: cardSecrets.webhook_secret,
    CARD_PROVIDER_TEST_TOKEN: testToken,
  }
  const start = async (port: string) => {
    const options = ['--port', port, '--books', books, '--settings', JSON.stringify(settings)]
    const child = spawn(process.execPath, [...scriptFlags(), script, ...options], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = once(child, 'exit')
    const [url] = (await Promise.race([
      once(createInterface({ input: child.stdout }), 'line'),
      ended.then(() => [null]),
    ])) as [string | null]
    if (url === null) throw new Error('the card provider ended at its start')
    return { child, url, ended }
  }
  const port = String(await freePort())
  let running = await start(port)
  const { url } = running

  const control = async (path: string, init: RequestInit = {}): Promise<unknown> => {
    const headers = { authorization: `Bearer ${testToken}` }
    const response = await fetch(`${url}/test/${path}`, { ...init, headers })
    if (!response.ok) throw new Error(`the card provider answered ${response.status} to ${path}`)
    return response.json()
  }
  const end = async (): Promise<void> => {
    running.child.kill('SIGKILL')
    await running.ended
  }
  return {
    url,
    books,
    toSettings: (more: Partial<ProviderSettings> = {}): ProviderSettings => ({
      ...{ kind: 'card', base_url: url, allow_private: true, window_ms: 24 * 3_600_000, timeout_ms: 20_000 },
      ...more,
    }),
    change: (change: Record<string, unknown>) =>
      control('settings', { method: 'PATCH', body: JSON.stringify(change) }),
    listPayments: async () => ((await control('books')) as { payments: Payment[] }).payments,
    signal: (name: NodeJS.Signals) => void running.child.kill(name),
    /** Kills it and starts it again at the same address, with the settings that it started with. */
    async restart(): Promise<void> {
      await end()
      running = await start(port)
    },
    end,
    async close(): Promise<void> {
      await end()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export type CardProvider = Awaited<ReturnType<typeof startCardProvider>>
