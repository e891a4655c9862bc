// tier: all
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { calling, say } from '../support/script.ts'
import { browserMissing, type Console, expectWhole, openConsole } from './console.ts'

type Run = { id: string; session_id: string; status: string }
type Answered = { status: string; input_request: { id: string } | null }

describe.skipIf(browserMissing)('tabs', () => {
  let mason: Console
  const submit = (prompt: string): Promise<Run> =>
    mason.call('POST', '/v1/runs/wait', { prompt, user_id: 'ann' })

  beforeAll(async () => {
    mason = await openConsole()
  })
  afterAll(() => mason?.[Symbol.asyncDispose]())
  afterEach(() => mason?.checkPages())

  test('a hidden tab resumes by id, with every action once', async () => {
    say(mason.model, { planner: [calling(['ask_user', { question: 'Go on?' }]), { text: 'Went on.' }] })
    const run = await submit('Wait for me')
    const page = await mason.visit(`/default/runs/${run.id}`)
    await page.getByText('Go on?').first().waitFor()
    const show = (state: 'hidden' | 'visible') =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${state === 'hidden'}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'))`)
    await show('hidden')
    const { input_request } = await mason.call<Answered>('GET', `/v1/runs/${run.id}`)
    await mason.call('POST', `/v1/runs/${run.id}/input`, { request_id: input_request?.id, answer: 'yes' })
    await expect
      .poll(async () => (await mason.call<Answered>('GET', `/v1/runs/${run.id}`)).status)
      .toBe('completed')
    await show('visible')
    await page.getByText('Went on.').first().waitFor()
    await expectWhole(page)
    mason.model.reset()
  })

  test('eight tabs of one browser follow eight runs and their list, over HTTP/1.1', {
    timeout: 300_000,
  }, async () => {
    say(mason.model, { planner: [calling(['ask_user', { question: 'Eight tabs?' }])] })
    const runs = await Promise.all(Array.from({ length: 7 }, (_, at) => submit(`Tab ${at}`)))
    say(mason.model, { planner: [{ text: 'Answered.' }] })
    const pages: Page[] = []
    for (const { id } of runs) pages.push(await mason.visit(`/default/runs/${id}`))
    const list = await mason.visit('/default/runs?status=input_required')
    await Promise.all(pages.map((page) => page.getByText('Eight tabs?').first().waitFor()))
    await list.getByRole('row', { name: /Tab 6/ }).waitFor()
    for (const { id } of runs) {
      const { input_request } = await mason.call<Answered>('GET', `/v1/runs/${id}`)
      await mason.call('POST', `/v1/runs/${id}/input`, { request_id: input_request?.id, answer: 'yes' })
    }
    for (const page of pages) {
      await page.getByText('Answered.').first().waitFor()
      await expectWhole(page)
    }
    await expect.poll(() => list.getByRole('row', { name: /Tab \d/ }).count()).toBe(0)
    mason.model.reset()
  })

  test('a list changes with the runs, in the tab with the stream and in another, which takes it over', async () => {
    const list = () => mason.visit('/default/runs')
    const [leader, other] = [await list(), await list()]
    say(mason.model, { planner: [{ text: 'Seen by both.' }] })
    const first = await submit('Change both lists')
    await leader.locator(`a[href$="${first.id}"]`).waitFor()
    await other.locator(`a[href$="${first.id}"]`).waitFor()
    const stream = other.waitForRequest(/\/v1\/events/)
    await leader.close()
    await stream
    const second = await submit('Change the other list')
    await other.locator(`a[href$="${second.id}"]`).waitFor()
    mason.model.reset()
  })
})
