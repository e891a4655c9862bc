import { type KeyObject, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { hashText, type JsonObject } from '../../../../../src/features/payments/mandates/tokens/encoding.ts'
import {
  appendMandate,
  conceal,
  issueMandate,
} from '../../../../../src/features/payments/mandates/tokens/issue.ts'
import {
  verifyCheckoutChain,
  verifyPaymentChain,
} from '../../../../../src/features/payments/mandates/verify/chains.ts'
import { toReferences, verifyReceipt } from '../../../../../src/features/payments/mandates/verify/receipts.ts'
import type { Violation } from '../../../../../src/features/payments/mandates/violations.ts'
import {
  expected,
  hop,
  issueCheckoutChain,
  issuePaymentChain,
  mandateTime,
  parties,
  shop,
} from '../../../../support/mandate-parties.ts'

const { surface, agent, merchant, processor } = parties
type Path = (string | number)[]
type Kind = 'less' | 'more' | 'other' | 'type' | 'removed'

/** The paths of all leaves. */
const findLeaves = (value: unknown, path: Path = []): Path[] =>
  typeof value === 'object' && value !== null
    ? Object.keys(value).flatMap((name) =>
        findLeaves(value[name as never], [...path, Array.isArray(value) ? Number(name) : name]),
      )
    : [path]

const kindsOf = (leaf: unknown): Kind[] =>
  typeof leaf === 'number' ? ['less', 'more', 'type', 'removed'] : ['other', 'type', 'removed']

const changeLeaf = (leaf: unknown, kind: Kind): unknown => {
  if (kind === 'type') return typeof leaf === 'number' ? 'text' : 5
  return typeof leaf === 'number'
    ? kind === 'less'
      ? leaf / 2
      : leaf * 2
    : (others[`${leaf}`] ?? `${leaf}0`)
}
/** Other values that are valid by themselves. */
const others: Record<string, string> = {
  ...{ USD: 'EUR', MONTHLY: 'ANNUALLY' },
  ...{ '2026-04-27': '2026-04-29', '2026-04-28': '2026-05-28', '2026-04-29': '2026-04-26' },
}

const readAt = (value: unknown, path: Path): unknown =>
  path.reduce((part, name) => (part as JsonObject)[name as string], value)

/** A copy in which one leaf is changed. */
const change = <Value>(value: Value, path: Path, kind: Kind): Value => {
  const copy = structuredClone(value)
  const owner = readAt(copy, path.slice(0, -1)) as JsonObject
  const name = path.at(-1) as string
  if (kind !== 'removed') owner[name] = changeLeaf(owner[name], kind)
  else if (Array.isArray(owner)) owner.splice(Number(name), 1)
  else delete owner[name]
  return copy
}

const toText = (path: Path) =>
  path
    .map((name) => (typeof name === 'number' ? `[${name}]` : `.${name}`))
    .join('')
    .replace(/^\./, '')
const toPart = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const toValue = (part = '') => JSON.parse(Buffer.from(part, 'base64url').toString())
const signText = (header: JsonObject, payload: JsonObject, { signing }: typeof agent): string => {
  const input = `${toPart(header)}.${toPart(payload)}`
  const key = signing.key as KeyObject
  const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}

const times = { iat: mandateTime - 60, exp: mandateTime + 3600 }
const another = { id: 'merchant_2', name: 'Another', website: 'https://another.example' }
const card = { id: 'card-1', type: 'card', description: 'Card 4242' }
const pisp = { legal_name: 'Example Ltd', brand_name: 'ExamplePay', domain_name: 'pisp.example' }
const fields = {
  payee: shop,
  payment_amount: { amount: 19900, currency: 'USD' },
  payment_instrument: card,
  pisp,
  execution_date: '2026-04-28',
  risk_data: { score: 'low' },
}
const closed = {
  payment: { vct: 'mandate.payment.1', transaction_id: 'checkout-1', ...fields, ...times },
  checkout: { vct: 'mandate.checkout.1', ...times },
}
const cnf = { jwk: agent.jwk }
const open = {
  payment: {
    vct: 'mandate.payment.open.1',
    constraints: [
      { type: 'payment.amount_range', currency: 'USD', max: 20000, min: 10000 },
      { type: 'payment.allowed_payees', allowed: [shop] },
      { type: 'payment.allowed_payment_instruments', allowed: [card] },
      { type: 'payment.allowed_pisps', allowed: [pisp] },
      { type: 'payment.reference', conditional_transaction_id: 'open-checkout' },
      { type: 'payment.agent_recurrence', frequency: 'MONTHLY', max_occurrences: 2 },
      { type: 'payment.budget', currency: 'USD', max: 250.5 },
      { type: 'payment.execution_date', not_before: '2026-04-27', not_after: '2026-04-29' },
    ],
    cnf,
    ...times,
  },
  checkout: {
    vct: 'mandate.checkout.open.1',
    constraints: [
      {
        type: 'checkout.line_items',
        items: [{ id: 'line_1', acceptable_items: [{ id: 'shoe', title: 'Shoe' }], quantity: 2 }],
      },
      { type: 'checkout.allowed_merchants', allowed: [another, shop] },
    ],
    cnf,
    ...times,
  },
}
const checkout = {
  ...{ id: 'order-1', iat: mandateTime - 60, exp: mandateTime + 600, merchant: shop, currency: 'USD' },
  line_items: [{ id: 'li_0', item: { id: 'shoe', title: 'Shoe', price: 9900 }, quantity: 2 }],
}
const spent = { amount_minor: 4000, uses: 1, last_used_at: mandateTime - 40 * 86_400 }
const facts = { transactionId: 'checkout-1', openCheckoutHash: 'open-checkout', spent }

/** Lists of what is allowed have a disclosure an entry, as the reference makes them. */
const hide = (value: unknown, name = ''): unknown => {
  if (Array.isArray(value)) {
    const isHidden = name === 'allowed' || name === 'acceptable_items'
    return value.map((item) => (isHidden ? conceal(hide(item)) : hide(item)))
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      key === 'checkout_jwt' ? conceal(item) : hide(item, key),
    ]),
  )
}

type MandateKind = 'payment' | 'checkout'
/** What is signed, and so where a change is made before it is signed: a content is the mandate in a hop. */
type Place = `${'open' | 'closed'} ${'content' | 'payload' | 'header'}` | 'checkout' | 'checkout header'
type Edit = { place?: Place; path?: Path; kind?: Kind }

/** A chain in which everything is signed by the right key, after one change. */
const issue = async (
  kind: MandateKind,
  { place, path = [], kind: how = 'other' }: Edit = {},
  presets: JsonObject = {},
): Promise<{ chain: string; hash: string; values: Record<Place, JsonObject> }> => {
  const values: Partial<Record<Place, JsonObject>> = {}
  const edit = (at: Place, value: JsonObject) => {
    values[at] = value
    return at === place ? change(value, path, how) : value
  }
  const resign = (text: string, at: 'open' | 'closed', party: typeof agent, claims: JsonObject = {}) => {
    const [jwt = '', ...rest] = text.split('~')
    const [head, body] = jwt.split('.')
    const header = edit(`${at} header`, toValue(head))
    return [signText(header, edit(`${at} payload`, { ...toValue(body), ...claims }), party), ...rest].join(
      '~',
    )
  }
  const header = { alg: 'ES256', typ: 'JWT', kid: 'merchant-1' }
  const jwt = signText(edit('checkout header', header), edit('checkout', checkout), merchant)
  const more = kind === 'checkout' ? { checkout_jwt: jwt, checkout_hash: hashText(jwt) } : {}
  const opened = hide(edit('open content', { ...open[kind], ...presets })) as JsonObject
  const root = await issueMandate(opened, surface.signing)
  const approved = hide(edit('closed content', { ...closed[kind], ...more })) as JsonObject
  const [, last = ''] = (await appendMandate(root, approved, agent.signing, hop)).split('~~')
  const first = resign(root, 'open', surface)
  const chain = `${first.slice(0, -1)}~~${resign(last, 'closed', agent, { sd_hash: hashText(first) })}`
  return { chain, hash: hashText(jwt), values: values as Record<Place, JsonObject> }
}

const verify = (kind: MandateKind, chain: string, checkoutHash?: string) =>
  kind === 'payment'
    ? verifyPaymentChain(chain, expected, facts)
    : verifyCheckoutChain(chain, expected, { checkoutHash })

/** `code`, and the field where it is not `own`. */
const outline = (violations: readonly Violation[], own: string): string =>
  violations.map(({ code, field }) => (field === own ? code : `${code}@${field}`)).join(' ') || 'ok'

const places = { open: 'hops[0]', closed: 'hops[1]', checkout: 'hops[1].checkout_jwt' }

/** A line for every leaf of a place, and what each change of it leads to when it is signed again. */
const tabulate = async (kind: MandateKind, place: Place, presets?: JsonObject): Promise<string[]> => {
  const value = (await issue(kind, {}, presets)).values[place]
  const [hopName = '', part = 'content'] = place.split(' ')
  const field = `${places[hopName as keyof typeof places]}${part === 'content' ? '' : `.${part}`}`
  const lines: string[] = []
  for (const path of findLeaves(value)) {
    const found: string[] = []
    for (const how of kindsOf(readAt(value, path))) {
      const { chain } = await issue(kind, { place, path, kind: how }, presets)
      found.push(`${how} ${outline(verify(kind, chain).violations, `${field}.${toText(path)}`)}`)
    }
    lines.push(`${toText(path)}: ${found.join(', ')}`)
  }
  return lines
}

const blocks: [kind: MandateKind, place: Place, presets?: JsonObject][] = [
  ['payment', 'open content', fields],
  ['payment', 'closed content'],
  ['checkout', 'open content'],
  ['checkout', 'closed content'],
  ['checkout', 'checkout'],
  ['checkout', 'checkout header'],
  ['payment', 'open payload'],
  ['payment', 'closed payload'],
  ['payment', 'open header'],
  ['payment', 'closed header'],
]
/** The reviewed table: `## block` and its lines. What is ok has a reason in a line that begins with #. */
const table = readFileSync(new URL('fields.txt', import.meta.url), 'utf8')
  .split(/^## /m)
  .map((text) => text.split('\n').filter((line) => line !== '' && !line.startsWith('# ')))

describe('every field, changed and signed again by the right key, leads to what the table says', () => {
  test.for(blocks)('%s: %s', async ([kind, place, presets]) => {
    expect(verify(kind, (await issue(kind, {}, presets)).chain).ok).toBe(true)
    const [, ...lines] = table.find(([title]) => title === `${kind} ${place}`) ?? []
    expect(await tabulate(kind, place, presets)).toEqual(lines)
  })

  test('a checkout of another hash is refused, whatever was changed', async () => {
    const { values, hash } = await issue('checkout')
    for (const place of ['checkout', 'checkout header'] as const)
      for (const path of findLeaves(values[place]))
        for (const kind of kindsOf(readAt(values[place], path))) {
          const { ok } = verify('checkout', (await issue('checkout', { place, path, kind })).chain, hash)
          expect(`${place} ${toText(path)} ${kind} ${ok}`).toBe(`${place} ${toText(path)} ${kind} false`)
        }
  })
})

/** Every text with one leaf of a JSON part changed. */
const changeParts = (text: string, separator: string): [what: string, changed: string][] =>
  text.split(separator).flatMap((part, i, parts) => {
    // of a token, the last part is a signature: any bytes, also some that begin as JSON does
    const isSignature = separator === '.' && i === parts.length - 1
    if (isSignature || !/^[\w-]+$/.test(part) || !/^[{[]/.test(Buffer.from(part, 'base64url').toString()))
      return []
    const value = toValue(part)
    return findLeaves(value).flatMap((path) =>
      kindsOf(readAt(value, path)).map((kind): [string, string] => [
        `part ${i} ${toText(path)} ${kind}`,
        parts.with(i, toPart(change(value, path, kind))).join(separator),
      ]),
    )
  })
const signatureOf = (field: string) =>
  new RegExp(`^${field.replace(/[[\]]/g, '\\$&')}\\.(signature wrong_signature|header\\.(alg|kid) )`)
const toLines = (violations: readonly Violation[]) => violations.map(({ field, code }) => `${field} ${code}`)

describe('every field, changed and not signed again, is refused', () => {
  test.for(['payment', 'checkout'] as const)('in each hop of a %s', async (kind) => {
    const { chain } = await issue(kind, {}, kind === 'payment' ? fields : {})
    const hops = chain.split('~~')
    let count = 0
    for (const [i, text] of hops.entries()) {
      const [jwt = '', ...disclosures] = text.split('~')
      const refused = async (changed: string, field: RegExp, what: string) => {
        const { stage, code, violations } = verify(kind, hops.with(i, changed).join('~~'))
        expect([what, stage, code], what).toEqual([what, 'crypto', 'invalid_credential'])
        expect(toLines(violations), what).toContainEqual(expect.stringMatching(field))
        count++
      }
      for (const [what, changed] of changeParts(jwt, '.'))
        await refused([changed, ...disclosures].join('~'), signatureOf(`hops[${i}]`), what)
      const unknown = new RegExp(
        `^hops\\[${i}\\]\\.(disclosures\\[\\d+\\]|payload\\.delegate_payload\\[0\\]) (unused_disclosure|malformed_disclosure|mandate_not_disclosed)$`,
      )
      for (const [what, changed] of changeParts(disclosures.join('~'), '~'))
        await refused(`${jwt}~${changed}`, unknown, what)
    }
    expect(count).toBeGreaterThan(60)
  })

  test('in the checkout that the merchant signed', async () => {
    const jwt = signText({ alg: 'ES256', typ: 'JWT', kid: 'merchant-1' }, checkout, merchant)
    for (const [what, changed] of changeParts(jwt, '.')) {
      const { chain } = await issueCheckoutChain({}, changed)
      expect(toLines(verify('checkout', chain).violations), what).toEqual([
        expect.stringMatching(signatureOf('hops[1].checkout_jwt')),
      ])
      const old = await issueCheckoutChain({ checkout_hash: hashText(jwt) }, changed)
      expect(toLines(verify('checkout', old.chain).violations), what).toContain(
        'hops[1].checkout_hash checkout_hash',
      )
    }
  })
})

describe('every field of a receipt', async () => {
  const chains = { payment: await issuePaymentChain(), checkout: (await issueCheckoutChain()).chain }
  const toReceipt = (kind: MandateKind, more: JsonObject) => ({
    ...{ iss: 'https://psp.example', iat: mandateTime - 5, reference: toReferences(chains[kind]).jwtHash },
    ...more,
  })
  const failed = { status: 'Error', error: 'invalid_mandate', error_description: 'too much' }
  const ids = { payment_id: 'p-1', psp_confirmation_id: 'psp-1', network_confirmation_id: 'net-1' }
  const receipts: [what: string, kind: MandateKind, receipt: JsonObject][] = [
    ['payment success', 'payment', toReceipt('payment', { status: 'Success', ...ids })],
    ['payment error', 'payment', toReceipt('payment', { ...failed, payment_id: 'p-1' })],
    ['checkout success', 'checkout', toReceipt('checkout', { status: 'Success', order_id: 'o-1' })],
    ['checkout error', 'checkout', toReceipt('checkout', failed)],
  ]
  const check = (kind: MandateKind, header: JsonObject, receipt: JsonObject, old?: string) => {
    const [head, body, signature] = signText(
      header,
      receipt,
      kind === 'payment' ? processor : merchant,
    ).split('.')
    const token = [head, body, old ?? signature].join('.')
    return verifyReceipt(token, kind, chains[kind], expected)
  }

  test.for(receipts)('of a %s leads to what the table says', ([what, kind, receipt]) => {
    const header = { alg: 'ES256', typ: 'JWT', kid: kind === 'payment' ? 'processor-1' : 'merchant-1' }
    expect(check(kind, header, receipt).ok).toBe(true)
    const [, , old] = signText(header, receipt, kind === 'payment' ? processor : merchant).split('.')
    const lines = [header as JsonObject, receipt].flatMap((value, part) =>
      findLeaves(value).map((path) => {
        const found = kindsOf(readAt(value, path)).map((how) => {
          const changed = change(value, path, how)
          const [head, body] = part === 0 ? ([changed, receipt] as const) : ([header, changed] as const)
          expect(toLines(check(kind, head, body, old).violations), `${toText(path)} ${how}`).toContainEqual(
            expect.stringMatching(signatureOf('receipt')),
          )
          const { stage, violations } = check(kind, head, body)
          const own =
            part === 0
              ? `receipt.header.${toText(path)}`
              : `${stage === 'crypto' ? 'receipt.' : ''}${toText(path)}`
          return `${how} ${outline(violations, own)}`
        })
        return `${toText(path)}: ${found.join(', ')}`
      }),
    )
    const [, ...expectedLines] = table.find(([title]) => title === what) ?? []
    expect(lines).toEqual(expectedLines)
  })
})
