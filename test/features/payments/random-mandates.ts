import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import fc from 'fast-check'
import type { CheckedLine } from './independent-checker.ts'

/** Random lines of `mason ap2 verify`, signed here with node:crypto: valid ones, and ones with an error of any kind. */

// biome-ignore lint/suspicious/noExplicitAny: JSON of every shape
type Json = any

const now = 1_777_342_400
type Party = { kid?: string; key: KeyObject; jwk: Json }
const createParty = (kid?: string): Party => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { ...(kid && { kid }), key: privateKey, jwk: publicKey.export({ format: 'jwk' }) }
}
const surface = createParty('surface-1')
const merchant = createParty('merchant-1')
/** Has a kid that is trusted, and another key. */
const mallory = createParty('surface-1')
const agents = [createParty(), createParty(), createParty(), createParty()]
const trusted = [surface, merchant].map(({ kid, jwk }) => ({ ...jwk, kid }))

const toBase64 = (value: Json): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url')
const signText = (input: string, key: KeyObject): string =>
  `${input}.${sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
const signJwt = (header: Json, payload: Json, { kid, key }: Party): string =>
  signText(`${toBase64({ alg: 'ES256', ...(kid && { kid }), ...header })}.${toBase64(payload)}`, key)

/** Becomes a digest, with a disclosure of its own. */
class Hidden {
  readonly value: Json
  /** Makes another disclosure of its parts. */
  readonly reshape: (parts: Json[]) => Json
  constructor(value: Json, reshape = (parts: Json[]): Json => parts) {
    this.value = value
    this.reshape = reshape
  }
}
const hide = (value: Json): Hidden => new Hidden(value)

/** Replaces what is hidden by digests; disclosures of what is inside come before. */
const conceal = (value: Json, disclosures: string[]): Json => {
  const add = ({ reshape }: Hidden, ...parts: Json[]): string => {
    const salt = `salt-${disclosures.length}-${digestOf(JSON.stringify(parts)).slice(0, 8)}`
    const text = toBase64(reshape([salt, ...parts]))
    disclosures.push(text)
    return digestOf(text)
  }
  if (Array.isArray(value))
    return value.map((item) =>
      item instanceof Hidden
        ? { '...': add(item, conceal(item.value, disclosures)) }
        : conceal(item, disclosures),
    )
  if (typeof value !== 'object' || value === null) return value
  const digests: string[] = []
  const members = Object.entries(value).flatMap(([name, item]): [string, Json][] => {
    if (!(item instanceof Hidden)) return [[name, conceal(item, disclosures)]]
    digests.push(add(item, name, conceal(item.value, disclosures)))
    return []
  })
  return { ...Object.fromEntries(members), ...(digests.length > 0 && { _sd: digests }) }
}

type Hop = {
  header: Json
  claims: Json
  mandate: Json
  signer: Party
  binding: 'sd_hash' | 'issuer_jwt_hash'
  /** Changes what is signed, after the binding is in it. */
  beforeSigning?: (payload: Json) => void
  /** How the mandate is in the token: with a disclosure, in the list as it is, or as the claims of the token (a root only). */
  shape: 'hidden' | 'plain' | 'claims'
  /** The holder leaves these disclosures out before the next hop binds this one. */
  drops: number[]
}
type Draft = {
  line: Omit<CheckedLine, 'token'>
  hops: Hop[]
  checkout: Json
  merchantKey: Party
  merchantHeader: Json
  /** The JWT that is sent in place of the one that is hashed. */
  swapped?: Json
  /** Changes the texts of the hops when all are signed. */
  afterSigning: ((texts: string[]) => string[])[]
}

const build = (draft: Draft): CheckedLine => {
  const { line, hops, checkout, merchantKey, merchantHeader, swapped } = draft
  const closed = hops.at(-1)?.mandate
  if (line.kind === 'checkout' && closed) {
    const jwt = signJwt({ typ: 'JWT', ...merchantHeader }, checkout, merchantKey)
    if (closed.checkout_hash === undefined) closed.checkout_hash = digestOf(jwt)
    if (closed.checkout_jwt === undefined)
      closed.checkout_jwt = hide(swapped ? signJwt({ typ: 'JWT' }, swapped, merchant) : jwt)
    if (line.checkout_hash === 'expected') line.checkout_hash = digestOf(jwt)
  }
  let texts: string[] = []
  for (const { header, claims, mandate, signer, binding, shape, beforeSigning, drops } of hops) {
    const before = texts.at(-1)
    const disclosures: string[] = []
    const content =
      shape === 'claims' ? mandate : { delegate_payload: [shape === 'plain' ? mandate : hide(mandate)] }
    const payload = conceal({ ...claims, ...content, _sd_alg: 'sha-256' }, disclosures)
    if (before !== undefined)
      payload[binding] = digestOf(binding === 'sd_hash' ? before : (before.split('~')[0] ?? ''))
    beforeSigning?.(payload)
    const jwt = signJwt(header, payload, signer)
    const sent = disclosures.filter((_, i) => !drops.includes(disclosures.length - 1 - i))
    texts.push([jwt, ...sent, ''].join('~'))
  }
  for (const change of draft.afterSigning) texts = change(texts)
  const token = texts.map((text, i) => (i < texts.length - 1 ? text.replace(/~$/, '') : text)).join('~~')
  return { ...line, token }
}

const shop = { id: 'merchant_1', name: 'Demo Merchant', website: 'https://demo-merchant.example' }
const others = [
  { id: 'merchant_2', name: 'Another', website: 'https://another.example' },
  { name: 'Demo Merchant', website: 'https://demo-merchant.example' },
  { id: 'merchant_3', name: 'Demo Merchant', website: 'https://demo-merchant.example' },
]
const card = { id: 'card-1', type: 'card', description: 'Card ••••4242' }
const pisp = { legal_name: 'Pay Ltd.', brand_name: 'Pay', domain_name: 'pay.example' }

/** Mostly yes. */
const often = fc.integer({ min: 0, max: 9 }).map((n) => n > 0)
const rarely = often.map((yes) => !yes)

const paymentPlan = fc.record({
  currency: fc.constantFrom('USD', 'USD', 'JPY', 'KWD'),
  amount: fc.integer({ min: 0, max: 30_000 }),
  room: fc.integer({ min: -1, max: 4 }),
  range: fc.boolean(),
  min: fc.option(fc.integer({ min: 0, max: 5 })),
  payees: fc.option(fc.subarray([shop, ...others, shop], { minLength: 2 })),
  website: often,
  instruments: fc.option(fc.subarray([card, { id: 'card-2', type: 'card' }, card], { minLength: 1 })),
  pisps: fc.option(fc.subarray([pisp, { ...pisp, brand_name: 'Other' }, pisp], { minLength: 1 })),
  pisp: often,
  frequency: fc.option(
    fc.constantFrom('ON_DEMAND', 'DAILY', 'WEEKLY', 'BIWEEKLY', 'MONTHLY', 'QUARTERLY', 'ANNUALLY'),
    { freq: 2 },
  ),
  most: fc.option(fc.integer({ min: 0, max: 4 })),
  budget: fc.boolean(),
  uses: fc.constantFrom(0, 0, 1, 2),
  reuses: rarely,
  spent: fc.integer({ min: 0, max: 100_000 }),
  knowsSpent: often,
  dated: often,
  /** Seconds since the last use: around the borders of the periods. */
  since: fc.oneof(
    fc.integer({ min: 0, max: 400 * 86_400 }),
    fc.constantFrom(1, 7, 14, 28, 30, 31, 90, 92, 365, 366).map((days) => days * 86_400),
  ),
  dates: fc.option(fc.tuple(fc.integer({ min: -3, max: 1 }), fc.integer({ min: -1, max: 3 })), { freq: 2 }),
  date: fc.option(fc.integer({ min: -4, max: 4 })),
  asDays: fc.boolean(),
  presets: fc.subarray(
    ['payee', 'payment_amount', 'payment_instrument', 'pisp', 'risk_data', 'execution_date'],
    {
      maxLength: 2,
    },
  ),
})
const checkoutPlan = fc.record({
  cart: fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.integer({ min: 1, max: 3 })), {
    maxLength: 4,
  }),
  needs: fc.array(
    fc.tuple(fc.subarray(['a', 'b', 'c', 'd'], { minLength: 1 }), fc.integer({ min: 1, max: 6 })),
    { minLength: 1, maxLength: 4 },
  ),
  /** A need for all that the cart has, so that many fit. */
  isEnough: often,
  merchants: fc.option(fc.subarray([shop, ...others, shop], { minLength: 2 })),
  hasMerchant: often,
  expectsHash: fc.boolean(),
})

const day = (offset: number, asDays: boolean): string => {
  const text = new Date((now + offset * 86_400) * 1000).toISOString()
  return asDays ? text.slice(0, 10) : text
}

const toPayment = (
  plan: typeof paymentPlan extends fc.Arbitrary<infer Plan> ? Plan : never,
  flags: boolean[],
) => {
  const { currency, amount } = plan
  const closed: Json = {
    vct: 'mandate.payment.1',
    transaction_id: 'checkout-1',
    payee: plan.website ? shop : { id: shop.id, name: shop.name },
    payment_amount: { amount, currency },
    payment_instrument: card,
    ...(plan.pisp && { pisp }),
    ...(plan.date !== null && { execution_date: day(plan.date, plan.asDays) }),
  }
  const wrap = (entries: Json[]): Json[] => entries.map((entry, i) => (flags[i] ? hide(entry) : entry))
  const decimals = { USD: 2, JPY: 0, KWD: 3 }[currency] ?? 0
  const budget = Number(
    `${BigInt(Math.max(0, amount + (plan.knowsSpent ? plan.spent : 0) + plan.room)).toString()}e-${decimals}`,
  )
  const isRecurring = plan.frequency !== null
  const constraints: Json[] = [
    { type: 'payment.reference', conditional_transaction_id: 'open-checkout' },
    ...(plan.range || isRecurring
      ? [
          {
            type: 'payment.amount_range',
            currency,
            max: Math.max(0, amount + plan.room),
            ...(plan.min !== null && { min: plan.min }),
          },
        ]
      : []),
    ...(plan.payees ? [{ type: 'payment.allowed_payees', allowed: wrap(plan.payees) }] : []),
    ...(plan.instruments
      ? [{ type: 'payment.allowed_payment_instruments', allowed: wrap(plan.instruments) }]
      : []),
    ...(plan.pisps ? [{ type: 'payment.allowed_pisps', allowed: wrap(plan.pisps) }] : []),
    ...(plan.budget || isRecurring ? [{ type: 'payment.budget', currency, max: budget }] : []),
    ...(isRecurring
      ? [
          {
            type: 'payment.agent_recurrence',
            frequency: plan.frequency,
            ...(plan.most !== null && { max_occurrences: plan.most }),
          },
        ]
      : []),
    ...(plan.dates
      ? [
          {
            type: 'payment.execution_date',
            not_before: day(plan.dates[0], plan.asDays),
            not_after: day(plan.dates[1], plan.asDays),
          },
        ]
      : []),
  ]
  const uses = plan.budget || isRecurring || plan.reuses ? plan.uses : 0
  const spent = plan.knowsSpent && {
    spent: {
      amount_minor: plan.spent,
      uses,
      ...(uses > 0 && plan.dated && { last_used_at: now - plan.since }),
    },
  }
  return {
    closed,
    constraints,
    line: { transaction_id: 'checkout-1', open_checkout_hash: 'open-checkout', ...spent },
  }
}

const toCheckout = (
  plan: typeof checkoutPlan extends fc.Arbitrary<infer Plan> ? Plan : never,
  flags: boolean[],
) => {
  const items = plan.needs.map(([ids, quantity], i) => ({
    id: `line_${i}`,
    acceptable_items: ids.map((id, j) => (flags[i + j] ? hide({ id, title: id }) : { id, title: id })),
    quantity,
  }))
  const count = plan.cart.reduce((sum, [, quantity]) => sum + quantity, 0)
  if (plan.isEnough && count > 0)
    items.push({
      id: 'enough',
      acceptable_items: plan.cart.map(([id]) => ({ id, title: id })),
      quantity: count,
    })
  return {
    closed: { vct: 'mandate.checkout.1' } as Json,
    constraints: [
      { type: 'checkout.line_items', items },
      ...(plan.merchants
        ? [
            {
              type: 'checkout.allowed_merchants',
              allowed: plan.merchants.map((one, i) => (flags[i] ? hide(one) : one)),
            },
          ]
        : []),
    ] as Json[],
    checkout: {
      id: 'order-1',
      ...(plan.hasMerchant && { merchant: shop }),
      currency: 'USD',
      line_items: plan.cart.map(([id, quantity], i) => ({
        id: `li_${i}`,
        item: { id, title: id, price: 100 },
        quantity,
      })),
    },
    line: plan.expectsHash ? { checkout_hash: 'expected' } : {},
  }
}

/** A number from the plan for whatever a change chooses among. */
type Choice = { at: number; other: number }
const pick = <Item>(items: readonly Item[], n: number): Item => items[n % items.length] as Item
const edges = [-302, -301, -300, -299, 299, 300, 301, 302, -5000, 5000]

const editJwt = (text: string, edit: (parts: string[]) => void): string => {
  const [jwt = '', ...rest] = text.split('~')
  const parts = jwt.split('.')
  edit(parts)
  return [parts.join('.'), ...rest].join('~')
}
const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
/** (r, n-s): the same signature, as ES256 sees it. */
const mirror = (signature: string): string => {
  const bytes = Buffer.from(signature, 'base64url')
  const s = order - BigInt(`0x${bytes.subarray(32).toString('hex')}`)
  return Buffer.concat([
    bytes.subarray(0, 32),
    Buffer.from(s.toString(16).padStart(64, '0'), 'hex'),
  ]).toString('base64url')
}
const onTexts =
  (change: (texts: string[], choice: Choice) => string[]) =>
  (draft: Draft, choice: Choice): void => {
    draft.afterSigning.push((texts) => change(texts, choice))
  }
const onText = (change: (text: string, n: number) => string) =>
  onTexts((texts, { at, other }) =>
    texts.map((text, i) => (i === at % texts.length ? change(text, other) : text)),
  )
const onDisclosures = (change: (all: string[], n: number) => string[]) =>
  onText((text, n) => {
    const [jwt = '', ...rest] = text.split('~')
    return [jwt, ...change(rest.slice(0, -1), n), ''].join('~')
  })
const onPayload =
  (change: (payload: Json, n: number) => void) =>
  (draft: Draft, { at, other }: Choice): void => {
    pick(draft.hops, at).beforeSigning = (payload) => change(payload, other)
  }
const onMandate =
  (change: (mandate: Json, n: number) => void) =>
  (draft: Draft, { at, other }: Choice): void =>
    change(pick(draft.hops, at).mandate, other)
const onClosed =
  (change: (mandate: Json, n: number) => void) =>
  (draft: Draft, { other }: Choice): void =>
    change(draft.hops.at(-1)?.mandate, other)
const onConstraint =
  (change: (constraint: Json, n: number, all: Json[]) => void) =>
  (draft: Draft, { at, other }: Choice): void => {
    const { constraints = [] } = pick(draft.hops, at).mandate
    if (constraints.length > 0) change(pick(constraints, other), other, constraints)
  }
/** Sets a member to what it must not be, or takes it away. */
const spoil = (target: Json, name: string, n: number): void => {
  const value = pick([undefined, null, '', 'x', -1, 1.5, 2 ** 53, true, [], {}], n)
  if (value === undefined) delete target[name]
  else target[name] = value
}

/** What is changed of a draft. Some changes leave it valid. */
const changes: Record<string, (draft: Draft, choice: Choice) => void> = {
  none: () => {},
  'a bit of a signature': onText((text, n) =>
    editJwt(text, (parts) => {
      const bytes = Buffer.from(parts[2] ?? '', 'base64url')
      bytes[n % 64] = (bytes[n % 64] ?? 0) ^ (1 << (n % 8))
      parts[2] = bytes.toString('base64url')
    }),
  ),
  'the mirrored signature': onText((text) => editJwt(text, (parts) => parts.push(mirror(parts.pop() ?? '')))),
  'a shorter signature': onText((text) =>
    editJwt(text, (parts) => parts.push((parts.pop() ?? '').slice(0, -4))),
  ),
  'a payload under its old signature': onText((text, n) =>
    editJwt(text, (parts) => {
      const payload = JSON.parse(Buffer.from(parts[1] ?? '', 'base64url').toString())
      payload[pick(['iat', 'aud', 'nonce', 'more', 'sd_hash'], n)] = 'changed'
      parts[1] = toBase64(payload)
    }),
  ),
  'another algorithm': (draft, { at, other }) => {
    pick(draft.hops, at).header.alg = pick(['none', 'HS256', 'RS256', 'es256', 'ES384', null], other)
  },
  'a header with a key': (draft, { at, other }) => {
    const hop = pick(draft.hops, at)
    hop.header[pick(['jwk', 'jku', 'x5u', 'x5c', 'crit'], other)] = hop.signer.jwk
  },
  'a foreign key': (draft, { at }) => {
    pick(draft.hops, at).signer = mallory
  },
  'an unknown kid': (draft) => {
    const [root] = draft.hops
    if (root) root.header.kid = 'unknown'
  },
  'another cnf': (draft, { at, other }) => {
    const hop = pick(draft.hops, at)
    const jwk = agents[0]?.jwk
    const cnf = pick(
      [undefined, {}, { jwk: mallory.jwk }, { jwk: { ...jwk, crv: 'P-384' } }, { jwk: { ...jwk, y: jwk.x } }],
      other,
    )
    if (cnf === undefined) delete hop.mandate.cnf
    else hop.mandate.cnf = cnf
  },
  'another typ': (draft, { at, other }) => {
    pick(draft.hops, at).header.typ = pick(
      ['JWT', 'kb+jwt', 'kb+sd-jwt', 'kb+sd-jwt+kb', 'kb-sd-jwt', 'kb-sd-jwt+kb', undefined],
      other,
    )
  },
  'another hash': onPayload((payload, n) => {
    for (const name of ['sd_hash', 'issuer_jwt_hash'])
      if (name in payload) payload[name] = pick([digestOf('x'), '', 1], n)
  }),
  'both hashes, or none': onPayload((payload, n) => {
    if (n % 2) Object.assign(payload, { sd_hash: digestOf('x'), issuer_jwt_hash: digestOf('y') })
    else for (const name of ['sd_hash', 'issuer_jwt_hash']) delete payload[name]
  }),
  'an audience or nonce': onPayload((payload, n) =>
    spoil(payload, pick(['aud', 'nonce'], n), Math.floor(n / 2)),
  ),
  'what the verifier expects': ({ line }, { other }) => {
    if (other % 2) line.audience = 'another'
    else line.nonce = 'another'
  },
  'a time of a hop': onPayload((payload, n) => {
    payload[pick(['iat', 'exp', 'nbf'], n)] = now + pick(edges, Math.floor(n / 3))
  }),
  'a time of a mandate': onMandate((mandate, n) => {
    mandate[pick(['iat', 'exp', 'nbf'], n)] = now + pick(edges, Math.floor(n / 3))
  }),
  'no iat': onPayload((payload) => delete payload.iat),
  'no number in a time': onMandate((mandate, n) => {
    mandate[pick(['iat', 'exp'], n)] = pick(['1777342400', true, {}], n)
  }),
  'the clock of the verifier': ({ line }, { other }) => {
    line.now += pick([...edges, 3599, 3600, 3899, 3900, 3901], other)
  },
  'another vct': onMandate((mandate, n) => {
    mandate.vct = pick(
      [
        'mandate.payment.1',
        'mandate.payment.open.1',
        'mandate.checkout.1',
        'mandate.checkout.open.1',
        'mandate.payment',
        'mandate.payment.2',
        'MANDATE.PAYMENT.1',
        undefined,
      ],
      n,
    )
  }),
  'a disclosure left out': onDisclosures((all, n) => all.filter((_, i) => i !== n % all.length)),
  'a disclosure left out before the next hop': (draft, { at, other }) => {
    pick(draft.hops, at).drops = [1 + (other % 6)]
  },
  'a disclosure twice': onDisclosures((all, n) => [...all, pick(all, n)]),
  'a disclosure of nothing': onDisclosures((all) => [...all, toBase64(['salt', { id: 'x' }])]),
  'a changed disclosure': onDisclosures((all, n) =>
    all.map((text, i) => (i === n % all.length ? toBase64(['salt', {}]) : text)),
  ),
  'disclosures in another order': onDisclosures((all) => all.toReversed()),
  'no hop at the end': onTexts((texts) => texts.slice(0, -1)),
  'no hop at the beginning': onTexts((texts) => texts.slice(1)),
  'hops in another order': onTexts((texts) => texts.toReversed()),
  'a hop twice': onTexts((texts, { at }) => texts.toSpliced(at % texts.length, 0, pick(texts, at))),
  'one "~" between hops': onTexts((texts) => [texts.map((text) => text.replace(/~$/, '')).join('~')]),
  'a key binding at the end': onTexts((texts) =>
    texts.map((text, i) => (i === texts.length - 1 ? `${text}e30.e30.AA` : text)),
  ),
  'two mandates in a hop': onPayload((payload) => {
    payload.delegate_payload = [...(payload.delegate_payload ?? []), {}]
  }),
  'another digest': onPayload((payload) => {
    payload._sd = ['x', 'x']
  }),
  'a decoy': onPayload((payload) => {
    payload._sd = [digestOf('decoy')]
  }),
  'a swapped checkout': (draft) => {
    draft.swapped = { ...draft.checkout, id: 'order-2' }
  },
  'a forged checkout': (draft) => {
    draft.merchantKey = { ...mallory, kid: 'merchant-1' }
  },
  'an unknown key of the merchant': (draft) => {
    draft.merchantHeader = { kid: 'merchant-2' }
  },
  'another checkout_hash or checkout_jwt': onClosed((mandate, n) => {
    mandate[pick(['checkout_hash', 'checkout_jwt'], n)] = pick([digestOf('x'), 'a.b.c'], Math.floor(n / 2))
  }),
  'a time of the checkout': (draft, { other }) => {
    if (draft.checkout) draft.checkout[pick(['iat', 'exp'], other)] = now + pick(edges, Math.floor(other / 2))
  },
  'what the line expects': ({ line }, { other }) => {
    const name = pick(['checkout_hash', 'transaction_id', 'open_checkout_hash'] as const, other)
    if (other % 2) line[name] = 'another'
    else delete line[name]
  },
  'a field of a closed mandate': onClosed((mandate, n) => {
    const name = pick(['transaction_id', 'payee', 'payment_amount', 'payment_instrument'], n)
    if (name in mandate) spoil(mandate, name, Math.floor(n / 4))
  }),
  'a member of a closed mandate': onClosed((mandate, n) => {
    const [name, member] = pick(
      [
        ['payee', 'id'],
        ['payee', 'name'],
        ['payment_amount', 'amount'],
        ['payment_amount', 'amount'],
        ['payment_amount', 'currency'],
        ['payment_instrument', 'id'],
      ],
      n,
    ) as [string, string]
    if (!(name in mandate)) return
    mandate[name] = { ...mandate[name] }
    spoil(mandate[name], member, Math.floor(n / 6))
  }),
  'another payee, item or method': onClosed((mandate, n) => {
    const changed = pick(
      [
        { payee: others[0] },
        { payment_instrument: { ...card, id: 'card-3' } },
        { pisp: { ...pisp, domain_name: 'x' } },
      ],
      n,
    )
    if ('payee' in mandate) Object.assign(mandate, changed)
  }),
  'an unknown constraint': onConstraint((_, n, all) => {
    all.push(
      pick(
        [
          { type: 'payment.lucky_days' },
          { type: 'toString' },
          { type: null },
          {},
          hide({ type: 'checkout.line_items' }),
        ],
        n,
      ),
    )
  }),
  'a hidden constraint': (draft, { at, other }) => {
    const hop = pick(draft.hops, at)
    if (!hop.mandate.constraints) return
    hop.mandate.constraints = hop.mandate.constraints.map((one: Json, i: number) =>
      i === other % 3 ? hide(one) : one,
    )
    hop.drops = other % 2 ? [1] : []
  },
  'a constraint left out': onConstraint((constraint, _, all) => all.splice(all.indexOf(constraint), 1)),
  'a constraint twice': onConstraint((constraint, _, all) => all.push(constraint)),
  'a constraint of another kind': onConstraint((constraint, n) => {
    constraint.type = pick(['payment.reference', 'checkout.line_items', 'payment.budget', ''], n)
  }),
  'a member of a constraint': onConstraint((constraint, n) => {
    const names = Object.keys(constraint).filter((name) => name !== 'type')
    spoil(constraint, pick(names, n), Math.floor(n / names.length))
  }),
  'a currency of a constraint': onConstraint((constraint, n) => {
    if ('currency' in constraint) constraint.currency = pick(['EUR', 'usd', 'ZZZ', ''], n)
  }),
  'a hidden preset': (draft, { at, other }) => {
    const hop = pick(draft.hops, at)
    hop.mandate.risk_data = hide({ score: 1 })
    hop.drops = other % 2 ? [1] : []
  },
  'a signed disclosure that is none': onMandate((mandate, n) => {
    const reshape = pick<(parts: Json[]) => Json>(
      [
        ([salt]) => [salt],
        (parts) => [...parts, 'more'],
        ([, ...parts]) => [1, ...parts],
        ([salt, , value]) => [salt, value],
        ([salt, , value]) => [salt, 5, value],
        ([salt]) => [salt, '_sd', []],
        ([salt]) => [salt, '...', 'x'],
        ([salt]) => [salt, 'vct', 'mandate'],
        () => 'text',
        (parts) => parts,
      ],
      n,
    )
    mandate.more = new Hidden('more', reshape)
  }),
  'an entry in the place of a claim': onConstraint((constraint) => {
    if (constraint.allowed)
      constraint.allowed = [...constraint.allowed, new Hidden({}, ([salt]) => [salt, 'id', 'x'])]
  }),
  'another digest algorithm': onPayload((payload, n) => {
    payload._sd_alg = pick(['sha-512', 'md5', null, 'sha-256', undefined], n)
  }),
  'another delegate_payload': onPayload((payload, n) => {
    payload.delegate_payload = pick([[], {}, ['text'], [[]], [null], [{ '...': digestOf('x') }], null], n)
  }),
  'another encoding': onText((text, n) =>
    editJwt(text, (parts) => {
      parts[2] += pick(['=', '==', ' ', '+', '\n', '.'], n)
    }),
  ),
  'another date': onClosed((mandate, n) => {
    mandate.execution_date = pick(
      [
        ...[
          '2026-04-28',
          '2026-04-28T10:00Z',
          '2026-04-28T10:00:00+02:00',
          '2026-04-28T10:00:00.5Z',
          '2026-02-30',
        ],
        ...['2026-04-28T10:00:00', 'tomorrow', '20260428', '2026-13-01', 5, ''],
      ],
      n,
    )
  }),
  'a line of the checkout': ({ checkout }, { other }) => {
    const line = checkout?.line_items[other % 2]
    if (line) spoil(line, pick(['quantity', 'quantity', 'item'], other), Math.floor(other / 3))
    if (line?.quantity === 2 ** 53) line.quantity = 0
  },
  'null members': onClosed((mandate, n) => {
    mandate[pick(['pisp', 'execution_date', 'risk_data', 'more'], n)] = null
  }),
  'no constraints': onMandate((mandate, n) => spoil(mandate, 'constraints', n)),
}

const plan = fc.record({
  what: fc.oneof(
    paymentPlan.map((payment) => ({ kind: 'payment' as const, payment })),
    checkoutPlan.map((checkout) => ({ kind: 'checkout' as const, checkout })),
  ),
  opens: fc.constantFrom(0, 1, 1, 1, 2),
  root: fc.constantFrom('mandate', 'mandate', 'mandate', 'claims', 'credential'),
  flags: fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }),
  bindings: fc.array(fc.constantFrom('sd_hash' as const, 'sd_hash' as const, 'issuer_jwt_hash' as const), {
    minLength: 4,
    maxLength: 4,
  }),
  changedPreset: rarely,
  change: fc.oneof(
    { weight: 1, arbitrary: fc.constant('none') },
    { weight: 2, arbitrary: fc.constantFrom(...Object.keys(changes)) },
  ),
  choice: fc.record({ at: fc.nat(5), other: fc.nat(200) }),
})

/** A line, and the change that was made to it. */
export const randomLines: fc.Arbitrary<{ line: CheckedLine; change: string }> = plan.map(
  ({ what, opens, root, flags, bindings, changedPreset, change, choice }) => {
    const made: { closed: Json; constraints: Json[]; checkout?: Json; line: object } =
      what.kind === 'payment' ? toPayment(what.payment, flags) : toCheckout(what.checkout, flags)
    const times = { iat: now - 60, exp: now + 3600 }
    const presets =
      what.kind === 'payment'
        ? Object.fromEntries(
            what.payment.presets
              .filter((name) => name in made.closed)
              .map((name) => [
                name,
                changedPreset ? { ...made.closed[name], changed: true } : made.closed[name],
              ]),
          )
        : {}
    // a user's credential before all mandates: its key signs the first of them
    const count = opens + (root === 'credential' ? 2 : 1)
    const hops = Array.from({ length: count }, (_, i): Hop => {
      const isLast = i === count - 1
      const cnf = { jwk: agents[i]?.jwk }
      const open = structuredCloneHidden({ constraints: made.constraints })
      const mandate = isLast
        ? { ...made.closed, ...times }
        : { vct: `mandate.${what.kind}.open.1`, ...open, ...presets, cnf, ...times }
      const kind = isLast ? 'kb+sd-jwt' : 'kb+sd-jwt+kb'
      const nonce = `nonce-${isLast ? 1 : i + 2}`
      return {
        header: { typ: i === 0 ? 'example+sd-jwt' : kind },
        claims: i > 0 || isLast ? { iat: now - 30, aud: isLast ? 'merchant' : 'agent', nonce } : {},
        mandate:
          i === 0 && root === 'credential' ? { vct: 'com.example.card', cnf, last_four: '4242' } : mandate,
        signer: i === 0 ? surface : (agents[i - 1] as Party),
        binding: bindings[i] ?? 'sd_hash',
        shape: i === 0 && root !== 'mandate' ? 'claims' : flags[i] ? 'plain' : 'hidden',
        drops: [],
      }
    })
    const draft: Draft = {
      line: {
        kind: what.kind,
        trust: { keys: trusted },
        audience: 'merchant',
        nonce: 'nonce-1',
        now,
        ...made.line,
      },
      hops,
      checkout: made.checkout,
      merchantKey: merchant,
      merchantHeader: {},
      afterSigning: [],
    }
    changes[change]?.(draft, choice)
    return { line: build(draft), change }
  },
)

/** A copy, so that what is changed of one hop stays in it. */
const structuredCloneHidden = (value: Json): Json => {
  if (value instanceof Hidden) return new Hidden(structuredCloneHidden(value.value), value.reshape)
  if (Array.isArray(value)) return value.map(structuredCloneHidden)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, structuredCloneHidden(item)]))
}
