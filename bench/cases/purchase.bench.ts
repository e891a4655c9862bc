import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startAgents } from '../../examples/buy-demo/agents.ts'
import { introduceAgents } from '../../examples/buy-demo/introductions.ts'
import { startShopper } from '../../examples/buy-demo/shopper.ts'
import { buyUnattended } from '../../examples/buy-demo/unattended.ts'
import { createKey, publicUrl, setUpTrust, signContent } from '../../examples/purchase/stage.ts'
import { startMason } from '../../examples/served-demo/processes.ts'
import { createClient } from '../../src/client/index.ts'
import type { Environment } from '../../src/infra/config/config.ts'
import { toPackagePath } from '../../src/infra/lib/package-path.ts'
import type { RunEvent } from '../../src/state/run-view.ts'
import { shopperSettings, startPayments } from '../../test/support/purchase-processes.ts'
import type { Case, Figures, Variant } from '../case.ts'
import { watchOthers } from '../support/others-time.ts'
import type { Place } from '../support/place.ts'
import { cpuMs } from '../support/processes.ts'
import { median } from '../support/statistics.ts'

/** `mason serve` and `mason payments`, as an operator starts them, with a model at this address. */
const startServed = async ({ env }: Place, modelUrl: string) => {
  const { PATH = '', HOME = '' } = process.env
  const common: Environment = { ...env, PATH, HOME, MASON_PUBLIC_URL: publicUrl }
  const { DATABASE_URL = '', MASON_AUTH: _auth, MASON_MASTER_KEY: _key, ...shared } = common
  const payments = await startPayments(DATABASE_URL, randomBytes(32).toString('base64'), shared)
  const settings = { ...common, ...shopperSettings(modelUrl) }
  const serve = await startMason(['serve', '--port', '0'], settings, /listens on (http\S+)/)
  return { serve, payments, url: serve.said[1] ?? '' }
}

/** What the person waits for. */
const events: Partial<Record<RunEvent['event'], string>> = {
  input_required: 'a question',
  consent_required: 'the consent',
  done: 'the end',
}

/** Purchases one after the other, from the prompt to the checked receipt, with a person who answers at once. */
const buy =
  (ap2: '0.1' | '0.2'): Variant =>
  async (place) => {
    const folder = await mkdtemp(join(tmpdir(), 'mason-bench-purchase-'))
    const [phone, model] = [createKey('phone-1'), await startShopper()]
    const { serve, payments, url } = await startServed(place, model.url)
    const set = await setUpTrust(url, 'none', phone)
    const agents = await startAgents({
      ...{ folder, audience: publicUrl, trust: set.keys, flags: null },
      change: { merchant: { unsigned_offers: ap2 === '0.1' } },
    })
    const others = watchOthers({
      ...{
        [model.url]: 'the model',
        [agents.merchant.url]: 'the merchant',
        [agents.wallet.url]: 'the wallet',
      },
      [agents.processor.url]: 'the processor',
    })
    try {
      await introduceAgents(set, agents)
      // as docs/payments.md has a business shop
      const template = await readFile(toPackagePath('templates', 'scenarios', 'shopping.json'), 'utf8')
      await set.call('POST', '/admin/v1/scenarios', JSON.parse(template) as object)
      const client = createClient({ url, token: 'none' })
      let nth = 0
      const once = async (): Promise<Figures> => {
        others.mark('the next purchase')
        others.readWaits()
        const [before, since] = [others.read(), performance.now()]
        const sign = (content: string) => others.act(() => signContent(content, phone))
        const onEvent = ({ event }: RunEvent): void => {
          const name = events[event]
          if (name !== undefined) others.mark(name)
        }
        const { answer } = await buyUnattended(
          { client, call: set.call, sign, scenario: 'shopping', onEvent },
          `user_${nth++}`,
        )
        if (!answer?.startsWith('I bought it')) throw new Error(`nothing was bought: ${answer}`)
        const [all, theirs] = [performance.now() - since, others.read() - before]
        const waits = Object.entries(others.readWaits()).map(([name, ms]) => [`of them until ${name}`, ms])
        return {
          ...{ 'ms of Mason': all - theirs, 'ms of agents, model and person': theirs },
          ...Object.fromEntries(waits),
        }
      }
      for (let n = 0; n < place.count(5); n++) await once()
      const cpu = [serve, payments].map(({ pid }) => cpuMs(pid))
      const found: Figures[] = []
      for (let n = 0; n < place.count(30); n++) found.push(await once())
      const used = [serve, payments].map(({ pid }, at) => (cpuMs(pid) - (cpu[at] ?? 0)) / found.length)
      return {
        ...Object.fromEntries(
          Object.keys(found[0] ?? {}).map((name) => [name, median(found.map((one) => one[name] ?? 0))]),
        ),
        'ms of Mason, least': Math.min(...found.map((one) => one['ms of Mason'] ?? Number.NaN)),
        ...{ 'CPU ms of mason serve': used[0] ?? 0, 'CPU ms of mason payments': used[1] ?? 0 },
      }
    } finally {
      others.stop()
      await Promise.all([agents.close(), serve.stop(), payments.stop()])
      model.close()
      await rm(folder, { recursive: true, force: true })
    }
  }

const purchase: Case = {
  about:
    'a purchase over A2A from the prompt to the checked receipt, through mason serve and mason payments: the time of Mason, without that of agents, model and person',
  ours: { 'AP2 0.1': buy('0.1'), 'AP2 0.2': buy('0.2') },
}

export default purchase
