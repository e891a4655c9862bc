import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { computeNextUse, readTimeSpan } from '../../../../../src/features/payments/mandates/calendar.ts'
import { readJson } from '../../../../../src/features/payments/mandates/json.ts'
import {
  checkCheckoutConstraints,
  checkPaymentConstraints,
  type PaymentFacts,
} from '../../../../../src/features/payments/mandates/v2/constraints.ts'
import { computeMaxFlow } from '../../../../../src/features/payments/mandates/v2/max-flow.ts'
import {
  checkoutSchema,
  openCheckoutMandateSchema,
  openPaymentMandateSchema,
  paymentMandateSchema,
} from '../../../../../src/features/payments/mandates/v2/types.ts'
import {
  parseBy,
  readBy,
  toMandateErrorCode,
} from '../../../../../src/features/payments/mandates/violations.ts'

const read = <Value>(result: { ok: true; value: Value } | { ok: false; violations: unknown[] }): Value => {
  if (!result.ok) throw new Error(JSON.stringify(result.violations))
  return result.value
}

const cnf = { jwk: { kty: 'EC', crv: 'P-256', x: 'a', y: 'b' } }
const hash = 'FzLoxbbtgQGYZxoSM2NJYJtkFTSsdfUBoVEQ12k7JN8'
const undisclosed = { '...': 'oEH7i1gyb-zn6awwjy57LvzxkQDfD-8tvlC2XuIkgOA' }
const reference = { type: 'payment.reference', conditional_transaction_id: hash }
const range = { type: 'payment.amount_range', currency: 'USD', max: 20000, min: 100 }
const recurrence = { type: 'payment.agent_recurrence', frequency: 'MONTHLY', max_occurrences: 3 }
const budget = { type: 'payment.budget', currency: 'USD', max: 500 }
const payee = { id: 'merchant_1', name: 'Demo Merchant', website: 'https://demo-merchant.example' }
const closed = {
  vct: 'mandate.payment.1',
  transaction_id: 'NivWhuqf',
  payee,
  payment_amount: { amount: 19900, currency: 'USD' },
  payment_instrument: { id: 'stub', type: 'card' },
}
/** 2026-04-28T02:13:20Z, when the examples of the documents are valid. */
const now = 1777342400
const facts: PaymentFacts = { now, openCheckoutHash: hash }

const checkPayment = (
  constraints: object[],
  changes: { open?: object; closed?: object; facts?: Partial<PaymentFacts> } = {},
) =>
  checkPaymentConstraints(
    read(
      parseBy(openPaymentMandateSchema, { vct: 'mandate.payment.open.1', constraints, cnf, ...changes.open }),
    ),
    read(parseBy(paymentMandateSchema, { ...closed, ...changes.closed })),
    { ...facts, ...changes.facts },
  )
const codesOf = (violations: { code: string; field: string }[]) =>
  violations.map(({ code, field }) => `${code} ${field}`)

describe('the constraints of an open payment mandate', () => {
  test('allow what is within all of them', () => {
    const spent = { amount_minor: 30100, uses: 2, last_used_at: Date.UTC(2026, 2, 28) / 1000 }
    const all = [
      reference,
      range,
      recurrence,
      budget,
      { type: 'payment.allowed_payees', allowed: [undisclosed, payee] },
      { type: 'payment.allowed_payment_instruments', allowed: [undisclosed, { id: 'stub', type: 'card' }] },
      { type: 'payment.execution_date', not_before: '2026-04-28', not_after: '2026-04-28T02:13:20Z' },
    ]
    expect(checkPayment(all, { facts: { spent } })).toEqual([])
  })

  test.each<[string, object[], Parameters<typeof checkPayment>[1], string[]]>([
    ['no reference', [range], {}, ['missing_constraint constraints']],
    [
      'another reference',
      [reference],
      { facts: { openCheckoutHash: 'x' } },
      ['reference_mismatch constraints[0]'],
    ],
    [
      'an unknown checkout',
      [reference],
      { facts: { openCheckoutHash: null } },
      ['checkout_unknown constraints[0]'],
    ],
    ['an unknown type', [reference, { type: 'com.example.x' }], {}, ['unknown_constraint constraints[1]']],
    ['a type of Object', [reference, { type: 'constructor' }], {}, ['unknown_constraint constraints[1]']],
    ['no type', [reference, {}], {}, ['unknown_constraint constraints[1]']],
    ['an undisclosed constraint', [reference, undisclosed], {}, ['unknown_constraint constraints[1]']],
    ['no maximum', [reference, { ...range, max: null }], {}, ['invalid_amount constraints[1].max']],
    [
      'an amount above the maximum',
      [reference, range],
      { closed: { payment_amount: { amount: 20001, currency: 'USD' } } },
      ['amount_above_max constraints[1].max'],
    ],
    [
      'an amount below the minimum',
      [reference, range],
      { closed: { payment_amount: { amount: 99, currency: 'USD' } } },
      ['amount_below_min constraints[1].min'],
    ],
    [
      'another currency',
      [reference, range, budget],
      {
        closed: { payment_amount: { amount: 100, currency: 'EUR' } },
        facts: { spent: { amount_minor: 0, uses: 0 } },
      },
      ['currency_mismatch constraints[1].currency', 'currency_mismatch constraints[2].currency'],
    ],
    [
      'a payee that only an undisclosed entry would allow',
      [reference, { type: 'payment.allowed_payees', allowed: [undisclosed] }],
      {},
      ['payee_not_allowed constraints[1]'],
    ],
    [
      'a payee of the same name and another id',
      [reference, { type: 'payment.allowed_payees', allowed: [{ ...payee, id: 'merchant_2' }] }],
      {},
      ['payee_not_allowed constraints[1]'],
    ],
    [
      'a payee of the same name without a website',
      [reference, { type: 'payment.allowed_payees', allowed: [{ name: payee.name }] }],
      {},
      ['payee_not_allowed constraints[1]'],
    ],
    [
      'another instrument',
      [
        reference,
        { type: 'payment.allowed_payment_instruments', allowed: [undisclosed, { id: 'x', type: 'card' }] },
      ],
      {},
      ['instrument_not_allowed constraints[1]'],
    ],
    [
      'no provider where some are allowed',
      [
        reference,
        { type: 'payment.allowed_pisps', allowed: [{ legal_name: 'a', brand_name: 'b', domain_name: 'c' }] },
      ],
      {},
      ['pisp_not_allowed constraints[1]'],
    ],
    [
      'a provider that differs in one name',
      [
        reference,
        { type: 'payment.allowed_pisps', allowed: [{ legal_name: 'a', brand_name: 'b', domain_name: 'c' }] },
      ],
      { closed: { pisp: { legal_name: 'a', brand_name: 'b', domain_name: 'd' } } },
      ['pisp_not_allowed constraints[1]'],
    ],
    [
      'a recurrence without range and budget',
      [reference, { ...recurrence, max_occurrences: null }],
      { facts: { spent: { amount_minor: 0, uses: 0 } } },
      ['missing_constraint constraints', 'missing_constraint constraints'],
    ],
    [
      'a recurrence whose past is not known',
      [reference, range, recurrence, budget],
      {},
      ['spent_unknown constraints[2]', 'spent_unknown constraints[3]'],
    ],
    [
      'a recurrence whose last use has no date',
      [reference, range, recurrence, budget],
      { facts: { spent: { amount_minor: 100, uses: 1 } } },
      ['last_use_unknown constraints[2].frequency'],
    ],
    [
      'a use too many and too early, over the budget: all are named',
      [reference, range, recurrence, budget],
      { facts: { spent: { amount_minor: 30101, uses: 3, last_used_at: Date.UTC(2026, 2, 29) / 1000 } } },
      [
        'max_occurrences_reached constraints[2]',
        'too_early constraints[2].frequency',
        'budget_exceeded constraints[3].max',
      ],
    ],
    [
      'an unknown frequency',
      [reference, range, { ...recurrence, frequency: 'HOURLY' }, budget],
      { facts: { spent: { amount_minor: 0, uses: 0 } } },
      ['invalid_field constraints[2].frequency'],
    ],
    [
      'a second use without a recurrence',
      [reference],
      { facts: { spent: { amount_minor: 100, uses: 1 } } },
      ['already_used constraints'],
    ],
    [
      'a date before the window',
      [reference, { type: 'payment.execution_date', not_before: '2026-04-29' }],
      {},
      ['outside_execution_window constraints[1].not_before'],
    ],
    [
      'a day that only begins within the window',
      [reference, { type: 'payment.execution_date', not_after: '2026-05-01T12:00:00Z' }],
      { closed: { execution_date: '2026-05-01' } },
      ['outside_execution_window constraints[1].not_after'],
    ],
    [
      'a date without an offset',
      [reference, { type: 'payment.execution_date', not_after: '2026-05-01T12:00:00' }],
      {},
      ['unreadable_date constraints[1].not_after'],
    ],
    [
      'a preset that changed, and one that is missing',
      [reference],
      { open: { payment_amount: { amount: 1, currency: 'USD' }, risk_data: { device: 'x' } } },
      ['preset_changed payment_amount', 'preset_changed risk_data'],
    ],
  ])('refuse %s', (_, constraints, changes, expected) => {
    const violations = checkPayment(constraints, changes)
    expect(codesOf(violations)).toEqual(expected)
    for (const { message } of violations)
      expect(message).toMatch(/^constraints.+|^[a-z_]+ is .+|^the open .+/)
  })

  test('allow presets that reappear, null or absent (row 11)', () => {
    const open = {
      payee: { ...payee, note: null },
      payment_amount: closed.payment_amount,
      execution_date: null,
    }
    expect(checkPayment([reference], { open })).toEqual([])
  })

  test('compare presets by their digits, however a number is written', () => {
    const isChanged = (preset: string, sent: string) => {
      const [open, closed] = [preset, sent].map((text) => ({ risk_data: readJson(`{"score":[${text}]}`) }))
      return codesOf(checkPayment([reference], { open, closed } as never))
    }
    for (const [preset, sent] of [
      ['249', '249.0'],
      ['0.10', '1e-1'],
      ['-0', '0.000'],
      ['1500', '1.5E+3'],
      ['12345678901234567890', '1234567890123456789e1'],
    ] as const)
      expect([preset, isChanged(preset, sent)]).toEqual([preset, []])
    for (const [preset, sent] of [
      ['0.1', '0.10000000000000001'],
      ['9007199254740993', '9007199254740992'],
      ['1e-400', '2e-400'],
      ['1', '-1'],
      ['1', '"1e0"'],
      ['1', '10'],
    ] as const)
      expect([preset, isChanged(preset, sent)]).toEqual([preset, ['preset_changed risk_data']])
  })

  test('have a budget in major units by the exponent of the currency (row 18)', () => {
    const raw = `{"vct":"mandate.payment.open.1","cnf":${JSON.stringify(cnf)},"constraints":[${JSON.stringify(reference)},
      {"type":"payment.budget","currency":"JPY","max":1000.0}]}`
    const open = read(readBy(openPaymentMandateSchema, raw))
    const pay = (amount: number) =>
      checkPaymentConstraints(
        open,
        read(parseBy(paymentMandateSchema, { ...closed, payment_amount: { amount, currency: 'JPY' } })),
        { ...facts, spent: { amount_minor: 400, uses: 1 } },
      )
    expect(pay(600)).toEqual([])
    expect(codesOf(pay(601))).toEqual(['budget_exceeded constraints[1].max'])
  })

  test('say by their code whether a person can still approve', () => {
    expect(toMandateErrorCode(checkPayment([range]))).toBe('unresolved_constraint')
    expect(toMandateErrorCode(checkPayment([range], { open: { payee: { ...payee, id: 'x' } } }))).toBe(
      'invalid_mandate',
    )
    expect(toMandateErrorCode([])).toBeNull()
  })
})

describe('the calendar rule (row 19)', () => {
  test.each([
    ['DAILY', '2026-03-01T23:59:59Z', '2026-03-02'],
    ['WEEKLY', '2026-12-28T10:00:00Z', '2027-01-04'],
    ['BIWEEKLY', '2026-02-20T10:00:00Z', '2026-03-06'],
    ['MONTHLY', '2026-01-31T10:00:00Z', '2026-02-28'],
    ['MONTHLY', '2028-01-31T10:00:00Z', '2028-02-29'],
    ['QUARTERLY', '2026-11-30T10:00:00Z', '2027-02-28'],
    ['ANNUALLY', '2028-02-29T10:00:00Z', '2029-02-28'],
  ] as const)('of %s allows the use after %s on %s', (frequency, last, next) => {
    expect(new Date(computeNextUse(Date.parse(last), frequency)).toISOString()).toBe(`${next}T00:00:00.000Z`)
  })

  test('of ON_DEMAND allows every moment', () => {
    expect(computeNextUse(Date.now(), 'ON_DEMAND')).toBe(Number.NEGATIVE_INFINITY)
  })

  test('knows no time without an offset and no day that does not exist', () => {
    for (const text of ['2026-04-30T12:00:00', '2026-02-30', '2026-13-01', 'tomorrow', '', '1777342400'])
      expect(readTimeSpan(text)).toBeNull()
    const to = Date.UTC(2026, 3, 30) - 1
    expect(readTimeSpan('2026-04-29')).toEqual({ from: Date.UTC(2026, 3, 29), to })
    expect(readTimeSpan('2025-11-12T03:45:42.037007+00:00')?.from).toBe(1762919142037)
  })
})

const checkCheckout = (constraints: object[], checkout: object) =>
  checkCheckoutConstraints(
    read(parseBy(openCheckoutMandateSchema, { vct: 'mandate.checkout.open.1', constraints, cnf })),
    { vct: 'mandate.checkout.1', checkout_jwt: 'x', checkout_hash: 'y' },
    read(parseBy(checkoutSchema, checkout)),
  )
const lineItems = (...items: [string[], number][]) => ({
  type: 'checkout.line_items',
  items: items.map(([ids, quantity], i) => ({
    id: `line_${i}`,
    quantity,
    acceptable_items: [undisclosed, ...ids.map((id) => ({ id, title: id }))],
  })),
})
const cart = (quantities: Record<string, number>) => ({
  line_items: Object.entries(quantities).map(([id, quantity]) => ({ item: { id }, quantity })),
})

describe('the constraints of an open checkout mandate', () => {
  test.each<[string, [string[], number][], Record<string, number>, string[]]>([
    [
      'allow an assignment that takes a detour',
      [
        [['a', 'b'], 1],
        [['a'], 1],
      ],
      { a: 1, b: 1 },
      [],
    ],
    [
      'allow a quantity that two entries share',
      [
        [['a', 'b'], 2],
        [['a', 'c'], 3],
      ],
      { a: 4, c: 1 },
      [],
    ],
    ['allow less than what is required', [[['a'], 5]], { a: 1 }, []],
    ['refuse two items for one entry', [[['a', 'b'], 1]], { a: 1, b: 1 }, ['too_many_items']],
    [
      'refuse more than the sum of entries',
      [
        [['a'], 2],
        [['a'], 3],
      ],
      { a: 6 },
      ['too_many_items'],
    ],
    [
      'refuse an item that no disclosed entry accepts',
      [
        [['a'], 1],
        [[], 9],
      ],
      { b: 1 },
      ['item_not_allowed'],
    ],
    ['refuse an empty checkout', [[['a'], 1]], {}, ['empty_checkout']],
    ['refuse a checkout of zero items', [[['a'], 1]], { a: 0 }, ['empty_checkout']],
  ])('%s', (_, requirements, quantities, expected) => {
    const violations = checkCheckout([lineItems(...requirements)], cart(quantities))
    expect(violations.map(({ code }) => code)).toEqual(expected)
    for (const { field } of violations) expect(field).toBe('constraints[0].items')
  })

  test('need line_items and an allowed merchant', () => {
    const merchants = { type: 'checkout.allowed_merchants', allowed: [undisclosed, payee] }
    const checkout = cart({ a: 1 })
    const lines = lineItems([['a'], 1])
    expect(codesOf(checkCheckout([merchants], { ...checkout, merchant: payee }))).toEqual([
      'missing_constraint constraints',
    ])
    expect(codesOf(checkCheckout([lines, merchants], checkout))).toEqual([
      'merchant_not_allowed constraints[1]',
    ])
    expect(checkCheckout([lines, merchants], { ...checkout, merchant: payee })).toEqual([])
    const { id: _, ...unnamed } = payee
    expect(checkCheckout([lines, merchants], { ...checkout, merchant: unnamed })).toEqual([])
  })

  test('read the `product` of the documents as the item of a line (row 23)', () => {
    const line_items = [{ id: 'line_1', product: { id: 'shoe', price: 199 }, quantity: 1 }]
    expect(checkCheckout([lineItems([['shoe'], 1])], { line_items })).toEqual([])
  })

  test('refuse a list of requirements without a single entry, which the reference takes for any item', () => {
    const items = [{ id: 'line_0', quantity: 1, acceptable_items: [] }]
    expect(codesOf(checkCheckout([{ type: 'checkout.line_items', items }], cart({ a: 1 })))).toEqual([
      'item_not_allowed constraints[0].items',
    ])
  })

  test('are decided for 200 entries and 10,000 items', () => {
    const names = (count: number) => Array.from({ length: count }, (_, i) => `sku-${i}`)
    const all = names(10_000)
    // every item is accepted by a pair of its own, and those of the second half compete
    const pairs = all.map((_, j) => [j % 200, (j + 1 + Math.floor(j / 200)) % 200])
    const requirements = Array.from({ length: 200 }, (_, i): [string[], number] => [
      all.filter((_, j) => pairs[j]?.includes(i)),
      i < 100 ? 90 : 10,
    ])
    const open = read(
      parseBy(openCheckoutMandateSchema, {
        vct: 'mandate.checkout.open.1',
        constraints: [lineItems(...requirements)],
        cnf,
      }),
    )
    const checkout = read(parseBy(checkoutSchema, cart(Object.fromEntries(all.map((id) => [id, 1])))))
    expect(checkCheckoutConstraints(open, {}, checkout)).toBeDefined()
  })
})

/** Hall's condition by brute force: no set of items may want more than the entries that accept one of them have. */
const fits = (requirements: [string[], number][], quantities: Record<string, number>): boolean => {
  const ids = Object.keys(quantities)
  return Array.from({ length: 2 ** ids.length }, (_, mask) => ids.filter((_, i) => mask & (1 << i))).every(
    (set) =>
      set.reduce((sum, id) => sum + (quantities[id] ?? 0), 0) <=
      requirements
        .filter(([accepted]) => accepted.some((id) => set.includes(id)))
        .reduce((sum, [, quantity]) => sum + quantity, 0),
  )
}

describe('the largest flow', () => {
  test('agrees with Hall on every small cart', () => {
    const id = fc.constantFrom('a', 'b', 'c', 'd')
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.uniqueArray(id), fc.integer({ min: 1, max: 4 })), {
          minLength: 1,
          maxLength: 5,
        }),
        fc.dictionary(id, fc.integer({ min: 1, max: 5 }), { minKeys: 1 }),
        (requirements, quantities) => {
          expect(checkCheckout([lineItems(...requirements)], cart(quantities)).length === 0).toBe(
            fits(requirements, quantities),
          )
        },
      ),
      { numRuns: 500 },
    )
  })

  test('gives up where it would take too long', () => {
    const count = 1_000
    const ones = Array.from({ length: count }, () => 1)
    const edges = ones.flatMap((_, i) => ones.map((_, j) => [i, j] as const))
    expect(computeMaxFlow(ones, ones, edges)).toBeNull()
  })
})
