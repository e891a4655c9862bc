import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { runCommand } from '../src/app/cli/command-runner.ts'
import { toPackagePath } from '../src/infra/lib/package-path.ts'
import { startMerchant, startShopper } from './pay-demo/shop.ts'
import { createKey, openStage, publicUrl, type Stage } from './purchase/stage.ts'

/** `npm run demo:pay`: an agent buys a coffee maker. Without a terminal the demo approves and answers itself. */

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

const demo = async ({ folder, terminal, close, openMason, buy }: Stage): Promise<boolean> => {
  const { out, colors } = terminal
  const merchantKey = createKey('shop-1')
  const provider = await startProvider(join(folder, 'books.jsonl'), {
    ...process.env,
    CARD_PROVIDER_TEST_TOKEN: 'demo',
  })
  close(provider.close)
  const merchant = await startMerchant('Coffee & Co', 'https://coffee.example', publicUrl, merchantKey)
  close(merchant.close)
  const model = await startShopper(merchant.url)
  close(model.close)
  out.write(
    `${colors.bold('Mason payment demo')}: Mason embedded, a merchant, a card provider and a scripted model\n`,
  )
  const mason = await openMason({
    ...{ OPENAI_BASE_URL: `${model.url}/v1`, OPENAI_API_KEY: 'none', OPENAI_MODEL: 'scripted' },
  })
  await mason.trust('https://coffee.example', merchantKey, 'merchant')
  const secrets = {
    api_key: 'sk_test_card_provider',
    webhook_secret: 'whsec_bWFzb24tY2FyZC1wcm92aWRlci10ZXN0LXNlY3JldA==',
  }
  const row = { name: 'cards', base_url: provider.url, allow_private: true, test: true, ...secrets }
  await mason.call('POST', '/admin/v1/providers', row)
  const host = { host: new URL(merchant.url).host, methods: ['GET'], allow_private: true }
  await mason.call('PATCH', '/admin/v1/businesses/default', { http_hosts: [host] })

  const isPaid = await buy(mason, 'Buy me a coffee maker from Coffee & Co.', ({ format }) =>
    format === 'payment-token' ? 'tok_challenge' : '123456',
  )
  const headers = { authorization: 'Bearer demo' }
  const books = await (await fetch(`${provider.url}/test/books`, { headers })).json()
  for (const { status, amount, currency, captured } of (books as { payments: Record<string, unknown>[] })
    .payments)
    out.write(`Books of the card provider: ${status}, ${captured} of ${amount} minor units of ${currency}\n`)
  return isPaid
}

await runCommand((env) => openStage(env(), demo))
