import type { ConsentFacts, OfferFacts } from './content.ts'

/** The pages that users open: Mason's own text, and what they sign, with nothing in it that acts or hides. */

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Characters that are not seen, or that change the order or look of others: controls, formats, all spaces but U+0020, fillers. */
const hidden = /(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (one) => entities[one] as string)

/** A text of others as HTML: escaped, isolated in its direction, and hidden characters by their code points. */
export const toSafeHtml = (text: string): string => {
  const shown = escapeHtml(text).replace(hidden, (one) => {
    const code = (one.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')
    return `<b class="hidden">U+${code}</b>`
  })
  return `<bdi>${shown}</bdi>`
}

/** The headers of every page: nothing is loaded but the script and style of this origin, and no other page frames it. */
export const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
}

/** A page. `body` is HTML that was escaped; `data` is for the script. */
const toPage = (title: string, body: string, data?: Record<string, unknown>): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<link rel="stylesheet" href="../consent.css">
${data ? '<script src="../consent.js" defer></script>' : ''}
</head>
<body>
<main${data ? ` data-page="${escapeHtml(JSON.stringify(data))}"` : ''}>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`

/** The status line, which screen readers speak. */
const statusLine = '<p id="status" role="status" aria-live="polite"></p>'

/** For a link that is not good. */
export const deadLinkPage = (): string =>
  toPage(
    'This link is not valid',
    '<p>It was used, has expired, or is incomplete. Nothing was changed. Ask where you got it for a new one.</p>',
  )

/** Where a user enrols a passkey. */
export const enrolmentPage = (userId: string, options: unknown): string =>
  toPage(
    'Add a passkey',
    `<p>With this passkey you will approve payments of <strong>${toSafeHtml(userId)}</strong>. Your fingerprint, face or PIN
stays on your device.</p>
<p>Go on only if you asked for this page yourself.</p>
<button type="button" id="approve">Add a passkey</button>
${statusLine}
<noscript><p>This page needs JavaScript.</p></noscript>`,
    { kind: 'enrol', options },
  )

const toRow = (name: string, html: string): string => `<dt>${name}</dt><dd>${html}</dd>`

const toPaymentRows = (facts: OfferFacts, expiresAt: string): string[] => {
  const { payee, payee_issuer, demo, total, items, refund_days, offer_ends, instrument, shares, warnings } =
    facts
  const lines = items.map(
    ({ text, price }) => `<li>${toSafeHtml(text)}${price ? `, ${toSafeHtml(price)}` : ''}</li>`,
  )
  return [
    toRow('To', toSafeHtml(payee)),
    toRow(
      'Who is paid',
      demo
        ? 'No one: this is a demo. The offer is not signed, and no money moves.'
        : `${toSafeHtml(payee_issuer)}, who signed this offer. The name above is what they call themselves.`,
    ),
    toRow('Exact total', `<span class="total">${toSafeHtml(total)}</span>`),
    ...warnings.map((warning) => toRow('Look twice', `<strong>${toSafeHtml(warning)}</strong>`)),
    toRow('For', `<ul>${lines.join('')}</ul>`),
    toRow('With', toSafeHtml(instrument)),
    toRow('Refund', refund_days === null ? 'As the merchant’s terms say' : `Within ${refund_days} days`),
    ...(offer_ends === null ? [] : [toRow('The offer ends', toSafeHtml(offer_ends))]),
    toRow('You can approve until', toSafeHtml(expiresAt)),
    toRow(
      'Who sees what',
      `The merchant and its payment processor see this order, that you approved it, and ${
        shares.length === 0 ? 'nothing else of you' : shares.map(toSafeHtml).join('; ')
      }. Your passkey stays on your device.`,
    ),
  ]
}

/** Where a user approves or refuses a payment or open mandates. `content` is what is signed, all of it; the facts are read from it. */
export const consentPage = (
  content: string,
  facts: ConsentFacts,
  expiresAt: string,
  options: unknown,
): string => {
  const isOpen = 'limits' in facts
  const rows = isOpen
    ? [
        ...facts.limits.map(({ name, text }) => toRow(name, toSafeHtml(text))),
        toRow('You can approve until', toSafeHtml(expiresAt)),
      ]
    : toPaymentRows(facts, expiresAt)
  const note = isOpen
    ? 'Within these limits your agent will pay <strong>without asking you again</strong>. You can revoke this at any time. Names of merchants and items are as your agent wrote them.'
    : 'The texts above are the merchant’s, but for who is paid.'
  return toPage(
    isOpen ? 'Let your agent buy later?' : 'Approve this payment?',
    `<dl>${rows.join('')}</dl>
<p>${note} Refuse if you did not ask for this.</p>
<button type="button" id="approve">Approve with your passkey</button>
<button type="button" id="refuse">Refuse</button>
${statusLine}
<details><summary>What you sign, byte for byte</summary><pre>${toSafeHtml(content)}</pre></details>
<noscript><p>This page needs JavaScript.</p></noscript>`,
    { kind: 'consent', options },
  )
}

/** The style of all pages. */
export const pageStyle = `:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { margin: 0; }
main { max-width: 36rem; margin: 0 auto; padding: 1.5rem; overflow-wrap: anywhere; }
dt { font-weight: 600; margin-top: .75rem; }
dd { margin: 0; }
.total { font-size: 1.5rem; font-weight: 700; }
.hidden { border: 1px solid; border-radius: .2rem; padding: 0 .2rem; font: .8em ui-monospace, monospace; }
pre { white-space: pre-wrap; border: 1px solid; padding: .75rem; max-height: 20rem; overflow: auto; }
button { font: inherit; padding: .6rem 1.2rem; margin: 1rem .5rem 0 0; cursor: pointer; }
#status { min-height: 1.5rem; font-weight: 600; }
`

/** The script of all pages. It sends what the authenticator made, and changes no text but the status. */
export const pageScript = `'use strict'
const page = JSON.parse(document.querySelector('main').dataset.page)
const status = document.getElementById('status')
const buttons = [...document.querySelectorAll('button')]
const say = (text) => { status.textContent = text }
const send = async (body, done) => {
  const response = await fetch(location.pathname, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), cache: 'no-store',
  })
  if (response.ok) return say(done)
  const problem = await response.json().catch(() => ({}))
  throw new Error([problem.detail || 'The server did not take it.', problem.remedy].filter(Boolean).join('. '))
}
const act = (id, work) => document.getElementById(id)?.addEventListener('click', async () => {
  for (const button of buttons) button.disabled = true
  say('Please wait …')
  try {
    await work()
  } catch (error) {
    const isCanceled = error && (error.name === 'NotAllowedError' || error.name === 'AbortError')
    say(isCanceled ? 'Nothing was sent. You can try again.' : 'It did not work: ' + error.message)
    for (const button of buttons) button.disabled = false
  }
})
const needPasskeys = () => {
  const { PublicKeyCredential: type } = window
  if (!type || !type.parseCreationOptionsFromJSON || !type.parseRequestOptionsFromJSON)
    throw new Error('This browser has no passkeys, or is too old. Use another one.')
  return type
}
act('approve', async () => {
  const type = needPasskeys()
  if (page.kind === 'enrol') {
    const publicKey = type.parseCreationOptionsFromJSON(page.options)
    const credential = await navigator.credentials.create({ publicKey })
    return send(credential.toJSON(), 'Done. You can close this page.')
  }
  const publicKey = type.parseRequestOptionsFromJSON(page.options)
  const credential = await navigator.credentials.get({ publicKey })
  await send({ approve: credential.toJSON() }, 'Approved. You can close this page.')
})
act('refuse', () => send({ refuse: true }, 'Refused. Nothing is paid. You can close this page.'))
`
