import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { calling, say } from '../support/script.ts'
import { browserMissing, type Console, expectWhole, findWithAxe, go } from './console.ts'

/** Who uses the console, and the roles of their tokens; the operator has the admin token. */
const people = {
  operator: null,
  'a business admin': ['admin'],
  support: ['submit', 'read'],
  'a developer': ['read'],
} as const
/** One of them. */
type Person = keyof typeof people

/** Each of them, or those named, uses the console that `open` gives, in these ways. */
export const walk = (
  title: string,
  open: () => Promise<Console>,
  ways: readonly string[],
  persons = Object.keys(people) as readonly Person[],
) =>
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

    const all = ways.flatMap((way) => persons.map((person) => [way, person] as const))
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
