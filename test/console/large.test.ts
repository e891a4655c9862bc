// tier: all
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { dropKeys } from '../support/drop-keys.ts'
import { calling, say } from '../support/script.ts'
import { dropDatabase, runAsAdmin, urlOf } from '../support/setup-served.ts'
import { browserMissing, type Console, openConsole } from './console.ts'
import { addActions } from './seed-actions.ts'

const { TEST_DATABASE_URL, TEST_REDIS_URL = '' } = process.env
const actions = 10_000

describe.skipIf(browserMissing || !TEST_DATABASE_URL || !TEST_REDIS_URL)(
  'large runs, on real servers (needs TEST_DATABASE_URL and TEST_REDIS_URL)',
  () => {
    const name = `mason_console_${randomBytes(4).toString('hex')}`
    let mason: Console
    const submit = (prompt: string) =>
      mason.call<{ id: string; session_id: string }>('POST', '/v1/runs/wait', { prompt, user_id: 'ann' })

    beforeAll(async () => {
      await runAsAdmin(`CREATE DATABASE ${name}`)
      mason = await openConsole({
        env: {
          ...{ DATABASE_URL: urlOf(name), REDIS_URL: TEST_REDIS_URL, MASON_QUEUE_PREFIX: name },
          MASON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
          MASON_TOOLS: join(import.meta.dirname, '..', 'support', 'large-tools'),
        },
      })
    })
    afterAll(async () => {
      await mason?.[Symbol.asyncDispose]()
      await Promise.all([dropDatabase(name), dropKeys(TEST_REDIS_URL, name)])
    })
    afterEach(() => mason?.checkPages())

    test('a run of 10,000 actions draws only what is visible, by keys and by tabs', {
      timeout: 300_000,
    }, async () => {
      say(mason.model, { planner: [calling(['calculate', { expression: '1 + 1' }]), { text: 'Two.' }] })
      const { id } = await submit('Count for long')
      await addActions(urlOf(name), id, actions)
      const page = await mason.visit(`/default/runs/${id}`)
      await page.getByText('10000', { exact: true }).waitFor()
      const list = page.getByRole('listbox')
      await list.press('End')
      await page.getByRole('option', { selected: true, name: '10000' }).waitFor()
      expect(await page.getByRole('option').count()).toBeLessThan(100)
      await page.waitForURL(/action=10000/)
      await list.press('Home')
      await page.getByRole('option', { selected: true, name: 'load-session' }).waitFor()
      for (const tab of ['State', 'Usage and cost', 'Graph', 'Payments']) {
        await page.getByRole('button', { name: tab, exact: true }).click()
        await page.locator('.view > *').first().waitFor()
      }
      mason.model.reset()
    })

    test('500 todos of one plan are a list, which says so', async () => {
      const todos = Array.from({ length: 500 }, (_, at) => ({
        ...{ id: `todo-${at}`, task: `Do ${at}`, dependencies: at === 0 ? [] : [`todo-${at - 1}`] },
      }))
      say(mason.model, {
        planner: [
          calling(['update_todos', { todos }], ['ask_user', { question: 'All of them?' }]),
          { text: 'No.' },
        ],
      })
      const { id } = await submit('Plan for long')
      mason.model.reset()
      const page = await mason.visit(`/default/runs/${id}?tab=todos`)
      await page.getByText('So many todos are shown as a list.').waitFor()
      expect(await page.locator('.view tbody tr').count()).toBe(500)
      await page.getByRole('cell', { name: 'todo-499 critical path' }).waitFor()
    })

    test('a result of 50 MB is not loaded: its start is there, and a link that saves all of it', {
      timeout: 300_000,
    }, async () => {
      say(mason.model, { planner: [calling(['large_result', {}]), { text: 'It is large.' }] })
      const { id } = await submit('Get it all')
      mason.model.reset()
      const page = await mason.visit(`/default/runs/${id}`)
      await page.getByRole('option', { name: 'large_result' }).click()
      const link = page.getByRole('link', { name: /50 000 0\d\d B/ })
      const [download] = await Promise.all([page.waitForEvent('download'), link.click()])
      let bytes = 0
      for await (const chunk of await download.createReadStream()) bytes += (chunk as Buffer).length
      expect(bytes).toBeGreaterThanOrEqual(50_000_000)
      expect((await page.content()).length).toBeLessThan(1_000_000)
    })
  },
)
