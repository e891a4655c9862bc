// backends: either

import { describe, expect } from 'vitest'
import { askConsent } from '../../../../src/features/payments/consent/consents.ts'
import { decideConsent } from '../../../../src/features/payments/consent/decide-consents.ts'
import { unique } from '../../../support/backend.ts'
import { chromiumPath, openBrowser, type Tab } from '../../../support/browser.ts'
import { newCart, newWaitingRun, trustParty } from '../../../support/consents.ts'
import { runtimeTest } from '../../../support/integration-test.ts'
import { createParty, parties } from '../../../support/mandate-parties.ts'
import { asProxy, expireLinks, site } from '../../../support/passkeys.ts'
import { openExecutorDatabase } from '../../../support/payments.ts'

/** The pages in a real browser, which is not there on every machine. */

/** Browsers have passkeys on this origin without TLS. */
const publicUrl = 'http://localhost'
const signer = {
  issuer: publicUrl,
  signingKey: async () => createParty('executor-1').signing,
  agentJwk: async () => parties.agent.jwk,
}

const test = runtimeTest
  .extend('runtimeOptions', { scope: 'file' }, { worker: false, config: { publicUrl } })
  .extend('browser', { scope: 'file' }, async ({ server }, { onCleanup }) => {
    await trustParty(server, parties.merchant, 'merchant')
    const browser = await openBrowser(Number(new URL(server.url).port))
    onCleanup(() => browser.close())
    return browser
  })
  .extend('decide', { scope: 'file' }, ({ backend, elsewhere }, { onCleanup }) => {
    const database = openExecutorDatabase(backend, elsewhere, 2)
    onCleanup(() => database.close())
    return () => decideConsent({ database, signer, publicUrl })
  })
  .extend('buyer', async ({ server, elsewhere, browser }) => {
    const user = unique('ann')
    const linkTo = async (path: string): Promise<string> => (await asProxy(server, 'POST', path)).body.url
    return {
      user,
      enrol: () => linkTo(`/v1/users/${user}/passkeys`),
      async ask(): Promise<string> {
        const cart = await newCart('Demo <b>Merchant')
        const run_id = await newWaitingRun(elsewhere, 'default', user)
        const bound = { tenant: 'default', user_id: user, run_id, audience: site.origin }
        const { payment_id } = await elsewhere.asBusiness('default', (sql) =>
          askConsent(sql, cart, { ...bound, payment_id: unique('pay'), lifetimeMs: 600_000 }),
        )
        return linkTo(`/v1/payments/${payment_id}/consent`)
      },
      newTab: () => browser.newTab(),
    }
  })

const textOf = (tab: Tab): Promise<string> => tab.evaluate('document.body.innerText')
const untilSaid = (tab: Tab, text: string | RegExp) =>
  expect
    .poll(() => tab.evaluate(`document.getElementById('status').textContent`), { timeout: 90_000 })
    .toMatch(text)

describe.skipIf(chromiumPath === null)('a person with a browser', () => {
  test('adds a passkey, reads what they pay, and approves it once', async ({ buyer, decide }) => {
    const tab = await buyer.newTab()
    const enrolment = await buyer.enrol()
    await tab.open(enrolment)
    expect(await textOf(tab)).toContain(`With this passkey you will approve payments of ${buyer.user}`)
    await tab.press('approve')
    await untilSaid(tab, 'Done. You can close this page.')
    await tab.open(enrolment)
    expect(await textOf(tab)).toContain('This link is not valid')
    const consent = await buyer.ask()
    await tab.open(consent)
    for (const shown of ['Demo <b>Merchant', 'https://demo-merchant.example, who signed', '199.00 USD'])
      expect(await textOf(tab)).toContain(shown)
    const second = await buyer.newTab()
    await second.open(consent)
    await tab.press('approve')
    await untilSaid(tab, 'Approved. You can close this page.')
    await second.press('refuse')
    await untilSaid(second, /^It did not work: .*approved or refused before/)
    expect(await decide()).toMatchObject({ status: 'verified' })
  })

  test('refuses without a passkey', async ({ buyer, decide }) => {
    const tab = await buyer.newTab()
    await tab.open(await buyer.ask())
    await tab.press('refuse')
    await untilSaid(tab, 'Refused. Nothing is paid. You can close this page.')
    expect(await decide()).toMatchObject({ status: 'refused' })
  })

  test('learns that a link has expired, before it is opened and after', async ({ buyer, elsewhere }) => {
    const tab = await buyer.newTab()
    const link = await buyer.enrol()
    await tab.open(link)
    await expireLinks(elsewhere, buyer.user)
    await tab.press('approve')
    await untilSaid(tab, /^It did not work: this link was used, has expired, or is none/)
    await tab.open(link)
    expect(await textOf(tab)).toContain('It was used, has expired, or is incomplete')
  })

  test('sees no page inside another one, and a page runs no script but its own', async ({ buyer }) => {
    const tab = await buyer.newTab()
    const link = await buyer.ask()
    await tab.open(link)
    const isRun = await tab.evaluate(`(() => {
      const script = document.createElement('script')
      script.textContent = 'window.isRun = true'
      document.body.append(script)
      return window.isRun === true
    })()`)
    expect(isRun).toBe(false)
    await tab.open(`${publicUrl}/healthz`)
    await tab.evaluate(`new Promise((done) => {
      const frame = document.createElement('iframe')
      frame.onload = done
      frame.src = ${JSON.stringify(link)}
      document.body.append(frame)
    }).then(() => true)`)
    const { frameTree } = await tab.send('Page.getFrameTree')
    expect(frameTree.childFrames).toMatchObject([
      { frame: { url: 'chrome-error://chromewebdata/', unreachableUrl: link } },
    ])
  })
})
