import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { calling, say } from '../support/script.ts'
import { inGate, testInAll } from '../support/tier.ts'
import { browserMissing, type Console, expectWhole, keepPicture } from './console.ts'

type Run = { id: string; session_id: string; status: string }
type Answered = { status: string; input_request: { id: string } | null }

/** The pages of runs, in a console that no run has been submitted to. */
export const describeRuns = (open: () => Console) =>
  describe.skipIf(browserMissing)('runs', () => {
    let mason: Console
    let done: Run
    let failed: Run
    const submit = (prompt: string, more: object = {}): Promise<Run> =>
      mason.call('POST', '/v1/runs/wait', { prompt, user_id: 'ann', ...more })

    beforeAll(async () => {
      mason = open()
      say(mason.model, {
        planner: [
          calling(['calculate', { expression: '6 * 7' }], ['calculate', { expression: '1 + 1' }]),
          { text: 'It is 42.' },
        ],
      })
      done = await submit('What is six times seven?')
      mason.model.script(() => ({ failure: { status: 400 } }))
      failed = await submit('Fail please', { user_id: 'bob', metadata: { plan: 'pro' } })
      mason.model.reset()
    })
    afterEach(() => mason?.checkPages())

    test('the list shows each run, and its row leads to the run', async () => {
      const page = await mason.visit('/default/runs')
      const row = page.getByRole('row', { name: /six times seven/ })
      await row.getByText('completed').waitFor()
      await keepPicture(page, 'runs')
      await row.getByRole('link', { name: 'What is six times seven?' }).click()
      await page
        .getByRole('option', { name: /planner/ })
        .first()
        .waitFor()
      expect(await page.getByText('It is 42.').count()).toBeGreaterThan(0)
      expect(page.url()).toContain(`/console/default/runs/${done.id}`)
    })

    test('a filter is part of the address, and a link with it shows the same', async () => {
      const page = await mason.visit('/default/runs')
      await page.getByLabel('Status').selectOption('failed')
      await page.getByRole('row', { name: /Fail please/ }).waitFor()
      await expect.poll(() => page.getByRole('row', { name: /six times/ }).count()).toBe(0)
      expect(page.url()).toContain('status=failed')
      await page.reload()
      await page.getByRole('row', { name: /Fail please/ }).waitFor()
      expect(await page.getByLabel('Status').inputValue()).toBe('failed')
    })

    testInAll('a field of metadata is filtered by, and cleared', async () => {
      const page = await mason.visit('/default/runs')
      const field = page.getByLabel('Metadata')
      await field.fill('plan=pro')
      await field.press('Enter')
      await page.waitForURL(/metadata\.plan=pro/)
      await expect.poll(() => page.locator('tbody tr').count()).toBe(1)
      await page.getByRole('row', { name: /Fail please/ }).waitFor()
      await field.fill('')
      await field.press('Enter')
      await page.getByRole('row', { name: /six times/ }).waitFor()
      expect(page.url()).not.toContain('metadata')
    })

    testInAll('a filter that matches nothing says so, and can be cleared', async () => {
      const page = await mason.visit('/default/runs?user_id=unknown')
      await page.getByText('No run matches this filter.').waitFor()
      await page.getByRole('button', { name: 'Clear the filter' }).click()
      await page.getByRole('row', { name: /six times/ }).waitFor()
    })

    const filters: [query: string, wanted: RegExp][] = [
      ['from=2020-01-01&order=asc', /six times/],
      ['user_id=bob', /Fail please/],
      ['finish_reason=answered', /six times/],
      ['metadata.plan=pro', /Fail please/],
      ['model=fake', /six times/],
    ]
    test.each(inGate(1, filters))('the filter %s of a link is applied', async (query, wanted) => {
      const page = await mason.visit(`/default/runs?${query}`)
      await page.locator('main').getByText(wanted).first().waitFor()
    })

    testInAll('one box finds runs, sessions and users, and says where there is none', async () => {
      const page = await mason.visit('/default/runs')
      const find = async (id: string) => {
        await page.getByRole('searchbox').fill(id)
        await page.getByRole('searchbox').press('Enter')
      }
      await find('nothing-has-this')
      await page.getByText('Nothing has this id.').waitFor()
      await find(done.id)
      await page.waitForURL(`**/runs/${done.id}`)
      await find(done.session_id)
      await page.waitForURL(`**/sessions/${done.session_id}`)
      await find('bob')
      await page.waitForURL('**/runs?user_id=bob')
    })

    test('a run shows its error and may be retried', async () => {
      const page = await mason.visit(`/default/runs/${failed.id}`)
      await page.getByRole('button', { name: 'Retry' }).waitFor()
      expect(await page.locator('.problem').textContent()).toMatch(/model_/)
      say(mason.model, { planner: [{ text: 'Now it works.' }] })
      await page.getByRole('button', { name: 'Retry' }).click()
      await page.getByText('Now it works.').first().waitFor()
      expect(page.url()).not.toContain(failed.id)
      mason.model.reset()
    })

    testInAll('a run is run again with another model, in a new session', async () => {
      say(mason.model, { planner: [{ text: 'Again, differently.' }] })
      const page = await mason.visit(`/default/runs/${done.id}`)
      await page.getByRole('button', { name: 'Run again' }).first().click()
      await page.getByRole('dialog').getByLabel('Prompt').fill('And eight times eight?')
      await page.getByRole('dialog').getByRole('button', { name: 'Run again' }).click()
      await page.getByText('Again, differently.').first().waitFor()
      mason.model.reset()
    })

    test('an action is selected by mouse and keys, and the address keeps it', async () => {
      const page = await mason.visit(`/default/runs/${done.id}`)
      await page.locator('.row-line').first().click()
      await page.getByRole('complementary').getByText('load-session').waitFor()
      await page.getByRole('listbox').press('ArrowDown')
      await page.waitForURL(/action=2/)
      await page.getByRole('listbox').press('End')
      await page
        .getByRole('complementary', { name: /Details/ })
        .getByText('· end')
        .waitFor()
      await keepPicture(page, 'run')
      await page.reload()
      await page.getByRole('complementary').getByText('· end').waitFor()
    })

    testInAll('calls at the same time are marked as parallel', async () => {
      const page = await mason.visit(`/default/runs/${done.id}`)
      await expect.poll(() => page.locator('.row-line', { hasText: 'calculate' }).count()).toBe(2)
    })

    const tabs = ['graph', 'usage', 'actions', 'state', 'todos', 'payments']
    test.each(inGate(2, tabs))('the tab %s has a link of its own', async (tab) => {
      const page = await mason.visit(`/default/runs/${done.id}?tab=${tab}`)
      const wanted = {
        actions: page
          .locator('.row-line', { hasText: 'It is 42' })
          .or(page.locator('.row-line', { hasText: 'Answered' }))
          .first(),
        graph: page.locator('svg .box[data-look~=visited]').first(),
        state: page.getByText('action_history'),
        todos: page.getByText('This run has no plan.'),
        usage: page.getByRole('cell', { name: /fake · planner/ }),
        payments: page.getByText('This run made no payment.'),
      }[tab]
      await wanted?.waitFor()
    })

    test('the prompt of an action is there as it was sent', async () => {
      const page = await mason.visit(`/default/runs/${done.id}?tab=prompt`)
      await page.getByText('as it was sent').waitFor()
      await page
        .getByRole('article', { name: '1 system' })
        .getByText(/You are the planner/)
        .waitFor()
      await page
        .getByRole('article', { name: /user/ })
        .getByText(/six times seven/)
        .first()
        .waitFor()
      await page.goto(`${mason.url}/console/default/runs/${done.id}?tab=prompt&action=1`)
      await page.getByRole('alert').getByText('no_prompt').waitFor()
    })

    testInAll('the state after an action says what this action changed', async () => {
      const page = await mason.visit(`/default/runs/${done.id}?tab=state&at=1`)
      await page.getByText('What it changed in the state').waitFor()
      await page
        .getByRole('region', { name: 'What it changed' })
        .getByText(/six times seven/)
        .waitFor()
    })

    test('a run is followed live, and every action is there once', async () => {
      say(mason.model, {
        planner: [
          calling(['ask_user', { question: 'Which color?', options: ['red', 'blue'] }]),
          { text: 'Blue it is.' },
        ],
      })
      const run = await submit('Paint it')
      const page = await mason.visit(`/default/runs/${run.id}`)
      await page.getByText('Which color?').first().waitFor()
      await page.getByRole('button', { name: 'blue' }).click()
      await page.getByText('Blue it is.').first().waitFor()
      await expectWhole(page)
      mason.model.reset()
    })

    testInAll('a run that is deleted while it is open says so', async () => {
      say(mason.model, { planner: [calling(['ask_user', { question: 'Still there?' }])] })
      const run = await submit('Delete me')
      const page = await mason.visit(`/default/runs/${run.id}`)
      await page.getByText('Still there?').first().waitFor()
      await mason.call('DELETE', `/v1/sessions/${run.session_id}`)
      await page.getByText('This run was deleted while it was open').waitFor()
      await page.getByRole('link', { name: 'Back to the runs' }).click()
      await page.waitForURL('**/runs')
      mason.model.reset()
    })

    test('cancelling asks first, and names the run', async () => {
      say(mason.model, { planner: [calling(['ask_user', { question: 'Cancel me?' }])] })
      const run = await submit('Cancel me')
      const page = await mason.visit(`/default/runs/${run.id}`)
      await page.getByRole('button', { name: 'Cancel run' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText(run.id).waitFor()
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'hidden' })
      expect((await mason.call<Answered>('GET', `/v1/runs/${run.id}`)).status).toBe('input_required')
      await page.getByRole('button', { name: 'Cancel run' }).click()
      await dialog.getByRole('button', { name: 'Confirm' }).click()
      await page.locator('.facts').getByText('cancelled').waitFor()
      mason.model.reset()
    })

    test('a new run is submitted from the page', async () => {
      say(mason.model, { planner: [{ text: 'Hello from the page.' }] })
      const page = await mason.visit('/default/runs')
      await page.getByRole('button', { name: 'New run' }).click()
      await page.getByRole('dialog').getByLabel('Prompt').fill('Say hello')
      await page.getByRole('dialog').getByRole('button', { name: 'Submit' }).click()
      await page.getByText('Hello from the page.').first().waitFor()
      mason.model.reset()
    })
  })
