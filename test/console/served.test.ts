import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { dropKeys } from '../support/drop-keys.ts'
import { calling, say } from '../support/script.ts'
import { dropDatabase, runAsAdmin, urlOf } from '../support/setup-served.ts'
import { browserMissing, type Console, expectWhole, findWithAxe, go, openConsole } from './console.ts'

const { TEST_DATABASE_URL, TEST_REDIS_URL = '' } = process.env
/** Who uses the console, and the roles of their tokens; the operator has the admin token. */
const people = {
  operator: null,
  'a business admin': ['admin'],
  support: ['submit', 'read'],
  'a developer': ['read'],
} as const
type Person = keyof typeof people

const walk = (title: string, open: () => Promise<Console>, ways: readonly string[]) =>
  describe.skipIf(browserMissing)(title, () => {
    let mason: Console
    const tokens = new Map<Person, string>()
    beforeAll(async () => {
      mason = await open()
      for (const [person, roles] of Object.entries(people))
        tokens.set(
          person as Person,
          roles === null ? mason.adminToken : (await mason.createToken(person, [...roles])).token,
        )
    })
    afterAll(() => mason?.[Symbol.asyncDispose]())
    afterEach(() => mason?.checkPages())

    const all = ways.flatMap((way) => Object.keys(people).map((person) => [way, person as Person] as const))
    test.each(all)('%s: %s sees the pages that the token allows, and a run live', async (way, person) => {
      if (mason.proxy) mason.proxy.strips = way === 'a proxy that strips the path'
      const mayWrite = person !== 'a developer'
      say(mason.model, {
        planner: [
          calling(['ask_user', { question: 'Which color?', options: ['red', 'blue'] }]),
          { text: 'It is red.' },
        ],
      })
      const prompt = `Paint it for ${person}, ${way}`
      const run = await mason.call<{ id: string; session_id: string }>('POST', '/v1/runs/wait', {
        ...{ prompt, user_id: 'ann' },
      })
      const page = await mason.visit('/default/runs', { token: tokens.get(person) as string })
      const links = page.locator('.side').getByRole('link')
      // all of /admin/v1 is the operator's
      expect((await links.count()) > 6).toBe(person === 'operator')
      expect(await page.getByRole('button', { name: 'New run' }).count()).toBe(mayWrite ? 1 : 0)
      const paths = await links.evaluateAll((all) => all.map((one) => one.getAttribute('href') ?? ''))
      const origin = new URL(mason.url).origin
      // each page is looked at as each of them sees it; as the operator does, by another test
      const isLookedAt = !mason.proxy && person !== 'operator'
      for (const path of paths) {
        await go(page, origin + path)
        if (isLookedAt) expect((await findWithAxe(page)).map((finding) => `${path}: ${finding}`)).toEqual([])
      }
      await page.goto(`${mason.url}/console/default/runs`)
      await page.getByRole('row', { name: prompt }).getByRole('link', { name: prompt }).click()
      await page.getByText('Which color?').first().waitFor()
      if (isLookedAt) expect(await findWithAxe(page)).toEqual([])
      if (mayWrite) await page.getByRole('button', { name: 'red' }).click()
      else {
        expect(await page.getByRole('button', { name: /^(red|Cancel run|Run again)$/ }).count()).toBe(0)
        const { input_request } = await mason.call<{ input_request: { id: string } }>(
          'GET',
          `/v1/runs/${run.id}`,
        )
        await mason.call('POST', `/v1/runs/${run.id}/input`, { request_id: input_request.id, answer: 'red' })
      }
      await page.getByText('It is red.').first().waitFor()
      await expectWhole(page)
      await page.reload()
      await page.getByText('It is red.').first().waitFor()
      expect(new URL(page.url()).pathname).toBe(
        `${new URL(mason.url).pathname.replace(/\/$/, '')}/console/default/runs/${run.id}`,
      )
      mason.model.reset()
    })
  })

describe.skipIf(!TEST_DATABASE_URL || !TEST_REDIS_URL)(
  'on real servers (needs TEST_DATABASE_URL and TEST_REDIS_URL)',
  () => {
    const name = `mason_console_${randomBytes(4).toString('hex')}`
    beforeAll(() => runAsAdmin(`CREATE DATABASE ${name}`))
    afterAll(() => Promise.all([dropDatabase(name), dropKeys(TEST_REDIS_URL, name)]))
    const env = () => ({
      ...{ DATABASE_URL: urlOf(name), REDIS_URL: TEST_REDIS_URL, MASON_QUEUE_PREFIX: name },
      MASON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    })
    walk('served', () => openConsole({ env: env() }), ['without a proxy'])
  },
)
walk('behind a proxy', () => openConsole({ prefix: '/mason' }), [
  'a proxy that strips the path',
  'a proxy that keeps the path',
])
