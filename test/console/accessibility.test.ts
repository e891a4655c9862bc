// tier: all
import type { Locator } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { calling, say } from '../support/script.ts'
import { browserMissing, type Console, findWithAxe, go, keepPicture, openConsole } from './console.ts'

describe.skipIf(browserMissing)('every page', () => {
  let mason: Console
  let run: { id: string; session_id: string }

  beforeAll(async () => {
    mason = await openConsole()
    const submit = (prompt: string): Promise<typeof run> =>
      mason.call('POST', '/v1/runs/wait', { prompt, user_id: 'ann' })
    say(mason.model, {
      planner: [calling(['calculate', { expression: '6 * 7' }]), { text: 'It is 42.' }],
    })
    run = await submit('What is six times seven?')
    say(mason.model, {
      planner: [calling(['ask_user', { question: 'Which color?', options: ['red', 'blue'] }])],
    })
    await submit('Paint it')
    mason.model.reset()
  })
  afterAll(() => mason?.[Symbol.asyncDispose]())
  afterEach(() => mason?.checkPages())

  const all = [
    ...[
      'runs',
      'RUN',
      'RUN?tab=actions&action=3',
      'RUN?tab=graph',
      'RUN?tab=state',
      'RUN?tab=todos',
      'RUN?tab=prompt&action=3',
      'RUN?tab=usage',
    ],
    ...[
      'RUN?tab=payments',
      'inbox',
      'sessions',
      'SESSION',
      'memory',
      'memory?user_id=ann',
      'files',
      'graph',
      'overview',
      'usage',
    ],
    ...[
      'workers',
      'effects',
      'rejected-jobs',
      'schedules',
      'webhooks',
      'audit',
      'vendors',
      'categories',
      'routes',
      'grants',
    ],
    ...[
      'response-formats',
      'scenarios',
      'businesses',
      'tokens',
      'operators',
      'users',
      'budgets',
      'providers',
      'trust',
    ],
  ]
  const toPath = (name: string): string =>
    `/default/${
      /^[a-z-]+$/.test(name) && all.indexOf(name) >= all.indexOf('workers')
        ? `admin/${name}`
        : name.replace('RUN', `runs/${run.id}`).replace('SESSION', `sessions/${run.session_id}`)
    }`

  test.each([
    ['light', 'en', undefined],
    // what colors and words decide; all else is as in the other
    [
      'dark',
      'zh',
      ['color-contrast', 'html-has-lang', 'html-lang-valid', 'button-name', 'link-name', 'label'],
    ],
  ] as const)(
    'axe finds nothing on any page (%s, %s)',
    { timeout: 300_000 },
    async (colorScheme, language, rules) => {
      const locale = language === 'zh' ? 'zh-CN' : 'en-US'
      const page = await mason.visit('/default/runs', { colorScheme, locale })
      const findings: string[] = []
      for (const name of all) {
        await go(page, `${mason.url}/console${toPath(name)}`)
        if (language === 'en' && ['overview', 'usage'].includes(name)) await keepPicture(page, name)
        findings.push(...(await findWithAxe(page, rules)).map((finding) => `${name}: ${finding}`))
      }
      expect(findings).toEqual([])
      expect(await page.locator('html').getAttribute('lang')).toBe(language)
    },
  )

  test.each([
    ['New run', 'runs'],
    ['Run again', 'RUN'],
    ['Delete session', 'SESSION'],
    ['Add', 'vendors'],
    ['Add', 'tokens'],
    ['Add', 'schedules'],
  ])('axe finds nothing in the dialog %s of %s', async (button, path) => {
    const page = await mason.visit(toPath(path))
    await page.getByRole('button', { name: button, exact: true }).click()
    await page.getByRole('dialog').waitFor()
    expect(await findWithAxe(page)).toEqual([])
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  })

  test.each([
    ['operator', null],
    ['a business admin', ['admin']],
    ['support', ['submit', 'read']],
    ['a developer', ['read']],
  ] as const)('each task of %s takes at most five clicks', { timeout: 300_000 }, async (person, roles) => {
    const token = roles === null ? mason.adminToken : (await mason.createToken(person, [...roles])).token
    const user = `user-of-${person.replaceAll(' ', '-')}`
    mason.model.script(() => ({ failure: { status: 400 } }))
    await mason.call('POST', '/v1/runs/wait', { prompt: 'Fail for them', user_id: user })
    const mayWrite = person !== 'a developer'
    say(mason.model, { planner: [calling(['ask_user', { question: user, options: ['red', 'blue'] }])] })
    if (mayWrite) await mason.call('POST', '/v1/runs/wait', { prompt: 'Ask', user_id: user })
    say(mason.model, { planner: [{ text: 'Fine now.' }] })
    const page = await mason.visit('/default/runs', { token })
    const clicks: Record<string, number> = {}
    /** What a person has to point at, one after the other; typing is none. */
    const task = async (name: string, ...steps: (Locator | [Locator, string])[]): Promise<void> => {
      for (const step of steps) {
        const [target, text] = Array.isArray(step) ? step : [step]
        if (text === undefined) await target.click()
        else if ((await target.evaluate(({ tagName }) => tagName)) === 'SELECT')
          await target.selectOption(text)
        else await target.fill(text).then(() => target.press('Enter'))
      }
      clicks[name] = steps.length
    }
    const link = (name: string) => page.locator('.side').getByRole('link', { name, exact: true })
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    const inDialog = (label: string | RegExp) => page.getByRole('dialog').getByLabel(label)
    const userField = page.getByLabel('User', { exact: true })
    if (roles === null)
      await task(
        'find the failed runs of a user since yesterday',
        ...[
          link('Overview'),
          page.locator('.tile').getByRole('link', { name: 'failed' }),
          [userField, user] as [Locator, string],
        ],
      )
    else {
      const day = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
      await task(
        'find the failed runs of a user since yesterday',
        ...([
          [page.getByLabel('Status'), 'failed'],
          [page.getByLabel('From'), day],
          [userField, user],
        ] as [Locator, string][]),
      )
    }
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
    await task('see why', page.getByRole('link', { name: 'Fail for them' }))
    await page.locator('.problem', { hasText: 'model_' }).waitFor()
    if (mayWrite) {
      await task('run it again with another model', button('Run again'), [inDialog('Model'), 'fake'])
      await page.locator('.facts', { hasText: 'It repeats' }).getByText('completed').waitFor()
      await task(
        'answer a waiting question',
        link('Inbox'),
        page.getByRole('article').filter({ hasText: user }).getByRole('button', { name: 'blue' }),
      )
      await expect.poll(() => page.getByRole('article').filter({ hasText: user }).count()).toBe(0)
    }
    if (roles === null) {
      const { id } = await mason.call('POST', '/admin/v1/vendors', { name: 'Rotating' })
      await mason.call('POST', `/admin/v1/vendors/${id}/keys`, { label: 'main', secret: 'sk-old' })
      await task(
        'rotate a key',
        link('Vendors'),
        page.getByRole('link', { name: 'Rotating' }),
        page.getByRole('link', { name: /^keys/ }),
        button('rotate'),
        [inDialog(/^secret/), 'sk-a-new-secret'],
      )
      await page.getByRole('dialog').getByRole('region', { name: 'Result' }).waitFor()
      await page.keyboard.press('Escape')
      await task('see what a business costs', link('Usage and cost'), [page.getByLabel('By'), 'business'])
      await page.getByRole('cell', { name: 'default' }).waitFor()
    }
    for (const [name, count] of Object.entries(clicks)) expect(count, name).toBeLessThanOrEqual(5)
    mason.model.reset()
  })

  test('at 320 px nothing but tables scrolls sideways, and the menu leads everywhere', async () => {
    const page = await mason.visit(`/default/runs/${run.id}`, { viewport: { width: 320, height: 640 } })
    await page.locator('.row-line').first().waitFor()
    for (const path of [
      '/default/runs',
      `/default/runs/${run.id}?action=3`,
      '/default/overview',
      '/default/inbox',
    ]) {
      await go(page, `${mason.url}/console${path}`)
      expect(await page.evaluate('document.documentElement.scrollWidth'), path).toBeLessThanOrEqual(320)
    }
    await page.getByRole('button', { name: 'Menu' }).click()
    await page.locator('#menu').getByRole('link', { name: 'Overview' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
  })
})
