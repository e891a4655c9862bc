import { type Mutant, testsOf } from './mutant.ts'

const payments = testsOf('test/features/payments/mandates/open-mandate-payments.test.ts')
const runs = testsOf('test/features/payments/mandates/open-mandates.test.ts')
const ended = payments(
  'an open mandate pays nothing once it is revoked, deleted or over, and for no other business',
)
const atOnce = payments(
  'closed mandates of one open mandate never take more than its budget, and never two are without an outcome: 20 runs on two executors',
)
const closer = 'src/features/payments/executor/close-order.ts'
const migration = 'src/features/payments/migrations/20261127_08_payments.sql'

/** What keeps an agent within the limits that a person signed before they went away. */
export const openMandateMutants: readonly Mutant[] = [
  {
    name: 'the end of an open mandate',
    file: 'src/features/payments/executor/reservation.ts',
    edits: [{ from: 'return row && !row.revoked && !row.expired ?', to: 'return row && !row.revoked ?' }],
    why: 'clocks of signers may be wrong by five minutes, and an agent pays that long after the end',
    caughtBy: ended,
  },
  {
    name: 'the business of an open mandate',
    file: closer,
    edits: [
      {
        from: 'WHERE m.mandate_id = $1 AND m.tenant = $2 AND',
        to: "WHERE m.mandate_id = $1 AND $2::text <> '' AND",
      },
    ],
    why: 'one business pays by what a user of another one signed',
    caughtBy: ended,
  },
  {
    name: 'the agent that an open mandate names',
    file: closer,
    edits: [{ from: '      if (!key)\n', to: "      if (agent === 'no key')\n" }],
    why: 'what was signed for another agent ends the executor in place of the payment',
    caughtBy: payments(
      'an open mandate is closed by the key that it names alone: another agent key, or one of a stranger, pays nothing',
    ),
  },
  {
    name: 'the amount of the merchant in a closed mandate',
    file: closer,
    edits: [
      {
        from: 'const payment = buildCheckoutPayment(checkoutJwt,',
        to: 'const { payment_amount, payee } = request as JsonObject\n      const payment = payment_amount ? JSON.stringify({ ...JSON.parse(buildCheckoutPayment(checkoutJwt, instrument ?? { id: "card", type: "card" })), payment_amount, payee }) : buildCheckoutPayment(checkoutJwt,',
      },
    ],
    why: 'a worker says who is paid how much',
    caughtBy: payments(
      'an open mandate takes no amount, payee or instrument from an order: a worker names a checkout, and nothing else counts',
    ),
  },
  {
    name: 'the account that the user signed',
    file: closer,
    edits: [{ from: '...route, ...readAccount(row),', to: '...readAccount(row), ...route,' }],
    why: 'a worker says whose card is charged',
    caughtBy: testsOf('test/features/shopping/away.test.ts')(
      'the executor charges the account that the user signed, whatever a worker names',
    ),
  },
  {
    name: 'the revocation of an open mandate',
    file: 'src/features/payments/executor/reservation.ts',
    edits: [
      {
        from: 'return row && !row.revoked && !row.expired ? null : endedViolation(row)',
        to: 'return row && !row.expired ? null : endedViolation(row)',
      },
    ],
    why: 'a payment that was verified before a revocation is reserved after it',
    caughtBy: payments('an open mandate that is revoked when a payment under it was verified pays nothing'),
  },
  {
    name: 'the release of what was not sent under a revoked mandate',
    file: migration,
    edits: [
      {
        after: 'CREATE FUNCTION end_open_mandate',
        from: "AND kind = 'pay' AND sent_at IS NULL",
        to: "AND kind = 'none' AND sent_at IS NULL",
      },
    ],
    why: 'what was reserved before a revocation is sent after it',
    caughtBy: payments('an open mandate that is revoked when a payment under it was reserved pays nothing'),
  },
  {
    name: 'one closed mandate without an outcome',
    file: 'src/features/payments/executor/reservation.ts',
    edits: [
      { from: "if (await hasRow(sql, liveStatement, [openId])) throw new RolledBackError('busy')", to: '' },
    ],
    why: 'a second closed mandate is refused while the first may still be declined',
    caughtBy: atOnce,
  },
  {
    name: 'the unique row of closed mandates',
    file: migration,
    edits: [{ from: 'CREATE UNIQUE INDEX payments_one_closed', to: 'CREATE INDEX payments_one_closed' }],
    why: 'two closed mandates of one open mandate may be with merchants at once',
    caughtBy: payments(
      'closed mandates of one open mandate are one without an outcome whatever a statement says',
    ),
  },
  {
    name: 'the texts of open mandates that are signed as they were shown',
    file: 'src/features/payments/mandates/v2/open-mandates.ts',
    edits: [
      {
        from: 'return made.checkout === pair.checkout && made.payment === pair.payment ? limits : null',
        to: "return made.checkout !== '' ? limits : null",
      },
    ],
    why: 'a person signs a preset or a limit that no page shows',
    caughtBy: runs('a person who is not present is asked for nothing that the page does not show'),
  },
  {
    name: 'the user of an open mandate',
    file: 'src/features/payments/consent/open-mandate-rows.ts',
    edits: [{ from: "'m.tenant = $1 AND m.user_id = $2'", to: `"m.tenant = $1 AND $2::text <> ''"` }],
    why: 'a run of one user pays by what another one signed',
    caughtBy: runs(
      'a person who is not present has mandates of their own: no run of another user sees or uses them',
    ),
  },
  {
    name: 'the merchants of an open mandate',
    file: 'src/features/payments/consent/proposals.ts',
    edits: [
      {
        from: 'const [issuer, other] = await listIssuers(sql, tenant, merchant)',
        to: 'const [issuer = merchant.name, other] = await listIssuers(sql, tenant, merchant)',
      },
    ],
    why: 'a person is asked to trust a merchant whose checkouts no trusted key signs',
    caughtBy: runs('a person who is not present is not asked for limits that no one could keep'),
  },
]
