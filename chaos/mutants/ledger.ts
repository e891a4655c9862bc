import { type Mutant, testsOf } from './mutant.ts'

const rows = testsOf('test/features/payments/rows.test.ts')
const executor = testsOf('test/features/payments/executor.test.ts')
const races = testsOf('test/features/payments/races.test.ts')
const folder = 'src/features/payments/executor'
const ledger = 'src/features/payments/migrations/20261127_08_payments.sql'

/** Guards of money: each payment once, inside its mandate, by the executor alone. */
export const ledgerMutants: readonly Mutant[] = [
  {
    name: 'a closed mandate is unique',
    file: ledger,
    edits: [{ from: 'CREATE UNIQUE INDEX payments_once', to: 'CREATE INDEX payments_once' }],
    why: 'a mandate pays twice',
    caughtBy: rows(
      'rows of payments of one closed mandate, or live ones of one checkout, are never two, whatever a statement says',
    ),
  },
  {
    name: 'a checkout has one live payment',
    file: ledger,
    edits: [{ from: 'CREATE UNIQUE INDEX payments_one_live ON', to: 'CREATE INDEX payments_one_live ON' }],
    why: 'an order is paid in each version of the protocol',
    caughtBy: [
      ...executor(
        'a payment of a checkout that was declined is possible with a new mandate, and of one that was paid is not',
      ),
      ...races(
        'many redemptions of one purchase at once on four executors, also mirrored and in both versions, are one payment',
      ),
    ],
  },
  {
    name: 'the budget in the database',
    file: ledger,
    edits: [
      {
        from: 'CONSTRAINT mandate_spend_budget CHECK (reserved_minor + spent_minor <= max_minor)',
        to: 'CHECK (true)',
      },
    ],
    why: 'a mistake of the executor spends more than a person allowed',
    caughtBy: rows('rows of payments with budgets refuse a sum over the maximum, whatever a statement says'),
  },
  {
    name: 'what workers may order',
    file: ledger,
    edits: [{ from: "WITH CHECK (kind IN ('pay', 'present', 'answer') OR (", to: 'WITH CHECK (true OR (' }],
    why: 'a worker settles what is unknown, or takes refunds',
    caughtBy: executor(
      'a login of workers orders payments, and neither settles, refunds nor captures one (on servers only: PGlite has one login)',
    ),
  },
  {
    name: 'a nonce is used once, in its time',
    file: `${folder}/reservation.ts`,
    edits: [{ from: 'AND used_at IS NULL AND expires_at > clock_timestamp()', to: '' }],
    why: 'what was signed for another payment pays',
    caughtBy: executor(
      'no money moves for a nonce that Mason did not give out, gave to another business, or that is over or used',
    ),
  },
  {
    name: 'what was spent is decided again',
    file: `${folder}/reservation.ts`,
    edits: [{ from: 'verified.checkSpent(facts)', to: 'verified.checkSpent({ ...facts, uses: 0 })' }],
    why: 'a monthly mandate pays every day',
    caughtBy: [
      ...executor(
        'a budget with a recurrence allows the next payment in its time, by the ledger and not by what an order says',
      ),
      ...races('payments under one recurring mandate at once are one payment in its period'),
    ],
  },
  {
    name: 'what was spent is read under its lock',
    file: `${folder}/reservation.ts`,
    edits: [
      {
        after: 'const lockSpendStatement',
        from: 'INSERT INTO mandate_spend (',
        to: 'WITH made AS (INSERT INTO mandate_spend (',
      },
      {
        from: 'DO UPDATE SET spend_id = excluded.spend_id\n  RETURNING reserved_minor + spent_minor AS minor, reserved_uses + spent_uses AS uses',
        to: `DO NOTHING) SELECT COALESCE(sum(reserved_minor + spent_minor), 0) AS minor, COALESCE(sum(reserved_uses + spent_uses), 0) AS uses
  FROM mandate_spend WHERE spend_id = $1`,
      },
    ],
    why: 'two payments under one mandate decide by the same rest',
    caughtBy: races('payments under one recurring mandate at once are one payment in its period'),
  },
  {
    name: 'a canceled payment is not sent',
    file: `${folder}/operations.ts`,
    edits: [{ from: 'AND (o.canceled_at IS NULL OR o.sent_at IS NOT NULL) RETURNING', to: 'RETURNING' }],
    why: 'a person cancels, and pays',
    caughtBy: executor('a run that is canceled between reservation and send gives the reservation back'),
  },
  {
    name: 'the lease is looked at before the first byte of a payment',
    file: `${folder}/operations.ts`,
    edits: [{ from: 'if (clock.monotonicMs() >= leaseEndsAt)', to: 'if (Number.isNaN(leaseEndsAt))' }],
    why: 'an executor that was frozen sends beside its successor',
    caughtBy: executor('an executor whose lease is over by its own clock sends nothing'),
  },
  {
    name: 'the epoch of a payment in sends',
    file: `${folder}/operations.ts`,
    edits: [
      {
        from: 'AND epoch = $2 AND lease_until > clock_timestamp() FOR UPDATE',
        to: 'AND $2::int > 0 FOR UPDATE',
      },
    ],
    why: 'an executor that was frozen sends beside its successor',
    caughtBy: executor('an executor that was frozen does not send beside another that sends again'),
  },
  {
    name: 'an unknown payment keeps its reservation',
    file: `${folder}/payment-answers.ts`,
    edits: [{ from: "  status: 'unknown',\n", to: "  status: 'unknown',\n  spending: 'released',\n" }],
    why: 'money that may be gone is spent again',
    caughtBy: executor(
      'a payment whose end is not known keeps its reservation when the window is over, is looked up, and is settled by an operator alone',
    ),
  },
  {
    name: 'an operation that the provider never saw is over',
    file: `${folder}/payment-executor.ts`,
    edits: [{ from: 'toUnseenAnswer(payment, operation))', to: 'null)' }],
    why: 'a payment waits for ever for an answer that was lost',
    caughtBy: executor(
      'what a provider never received of a challenge is asked for again, and after three answers an operator settles the payment',
      'what a provider never received of a capture, void or refund is declined, and can be ordered again',
    ),
  },
  {
    name: 'the payee signed the checkout',
    file: 'src/features/payments/mandates/verify/payee.ts',
    edits: [{ from: 'if (!isNamed || !isIssuer)', to: 'if (!isNamed)' }],
    why: 'one merchant sells, and another is paid',
    caughtBy: executor(
      'no money moves for a payee that did not sign the checkout, an amount that is not its total, another currency',
    ),
  },
  {
    name: 'the payment is of the checkout',
    file: `${folder}/verify-order.ts`,
    edits: [
      {
        from: 'const transactionId = checkout.ok ? checkout.value.closed.checkout_hash : undefined',
        to: 'const transactionId = undefined as string | undefined',
      },
    ],
    why: 'a person signs one purchase, and another is paid',
    caughtBy: executor(
      'no money moves for a tampered or foreign mandate, a changed cart, and another audience',
    ),
  },
  {
    name: 'every mandate has an end',
    file: `${folder}/verify-order.ts`,
    edits: [{ from: '(content.exp ?? claims.exp) === undefined', to: 'content.vct === null' }],
    why: 'a mandate pays years later',
    caughtBy: executor('no money moves for an expired mandate, one without an end, and one over its range'),
  },
  {
    name: 'the uses in the database',
    file: ledger,
    edits: [
      {
        from: 'CONSTRAINT mandate_spend_uses CHECK (reserved_uses + spent_uses <= max_uses)',
        to: 'CHECK (true)',
      },
    ],
    why: 'a mistake of the executor uses a mandate more often than a person allowed',
    caughtBy: rows('rows of payments with budgets refuse a sum over the maximum, whatever a statement says'),
  },
  {
    name: 'one order for each call',
    file: ledger,
    edits: [
      { from: 'CREATE UNIQUE INDEX payment_orders_of_call', to: 'CREATE INDEX payment_orders_of_call' },
    ],
    why: 'a call that is tried again orders again',
    caughtBy: rows(
      'rows of payments of one call, payment, order or event are never two, whatever a statement says',
    ),
  },
  {
    name: 'one order to pay for each payment',
    file: ledger,
    edits: [{ from: 'CREATE UNIQUE INDEX payment_orders_pay', to: 'CREATE INDEX payment_orders_pay' }],
    why: 'a payment is ordered twice',
    caughtBy: rows(
      'rows of payments of one call, payment, order or event are never two, whatever a statement says',
    ),
  },
  {
    name: 'one operation for each order',
    file: ledger,
    edits: [{ from: 'order_id text NOT NULL UNIQUE', to: 'order_id text NOT NULL' }],
    why: 'a refund is made twice under two keys',
    caughtBy: rows(
      'rows of payments of one call, payment, order or event are never two, whatever a statement says',
    ),
  },
  {
    name: 'one authorization for each payment',
    file: ledger,
    edits: [
      {
        from: 'CREATE UNIQUE INDEX payment_operations_authorize',
        to: 'CREATE INDEX payment_operations_authorize',
      },
    ],
    why: 'a payment is charged twice under two keys',
    caughtBy: rows(
      'rows of payments of one call, payment, order or event are never two, whatever a statement says',
    ),
  },
  {
    name: 'an event of a provider counts once',
    file: ledger,
    edits: [{ from: 'CREATE UNIQUE INDEX payment_inbox_once', to: 'CREATE INDEX payment_inbox_once' }],
    why: 'a webhook that comes twice counts twice',
    caughtBy: rows(
      'rows of payments of one call, payment, order or event are never two, whatever a statement says',
    ),
  },
  {
    name: 'what the executor alone writes',
    file: ledger,
    edits: [
      {
        from: 'GRANT SELECT ON payments TO mason_api, mason_business, mason_worker',
        to: 'GRANT SELECT, INSERT, UPDATE, DELETE ON payments TO mason_api, mason_business, mason_worker',
      },
    ],
    why: 'a worker that is taken over says that it paid',
    caughtBy: rows(
      'rows of payments are seen by the API of their business alone, and changed by none but the executor',
      'rows of payments of one business cannot be written for another, nor a payment, its spend or its events at all',
    ),
  },
  {
    name: 'payments are seen by their business',
    file: ledger,
    edits: [
      {
        after: 'POLICY business ON payments',
        from: "USING (tenant = current_setting('mason.business', true))",
        to: 'USING (true)',
      },
    ],
    why: 'one business reads and orders payments of another',
    caughtBy: rows(
      'rows of payments are seen by the API of their business alone, and changed by none but the executor',
      'rows of payments of one business cannot be written for another, nor a payment, its spend or its events at all',
    ),
  },
  {
    name: 'who ends the wait for a payment',
    file: 'migrations/20261127_02_engine.sql',
    edits: [{ from: "IF p_kind = 'payment' AND NOT pg_has_role", to: "IF p_kind = 'x' AND NOT pg_has_role" }],
    why: 'a worker that is taken over tells a run that it has paid',
    caughtBy: testsOf('test/features/payments/attack.test.ts')(
      'a stolen login (on servers only: PGlite is one session of one user) of a worker reads no secret of payments and moves no money',
    ),
  },
  {
    name: 'a nonce is locked while it is taken',
    file: `${folder}/reservation.ts`,
    edits: [{ from: ' FOR UPDATE OF payment_nonces', to: '' }],
    why: 'two payments at one moment use one nonce',
    caughtBy: races('payments with one nonce that are reserved at the same moment are one payment'),
  },
  {
    name: 'the epoch of a payment in settlements',
    file: `${folder}/settlement.ts`,
    edits: [{ from: 'AND epoch = $epoch AND status IN', to: 'AND $epoch::int > 0 AND status IN' }],
    why: 'an executor that was frozen settles what another one is sending',
    caughtBy: executor(
      'an executor that was frozen with an answer writes nothing while another has the payment',
    ),
  },
  {
    name: 'what is settled never changes',
    file: `${folder}/payment-answers.ts`,
    edits: [
      {
        from: "const openStatuses = ['sent', 'unknown']",
        to: "const openStatuses = ['sent', 'unknown', 'succeeded']",
      },
    ],
    why: 'a webhook that comes late takes back what was paid',
    caughtBy: executor(
      'a payment whose end is not known succeeds by a genuine webhook, which counts once, in whatever order and number webhooks come',
    ),
  },
  {
    name: 'never more is refunded than was paid',
    file: `${folder}/order-problems.ts`,
    edits: [{ from: ' && Number(amount) <= rest', to: '' }],
    why: 'an admin pays back more than was taken',
    caughtBy: executor(
      'a payment that was authorized alone is captured or voided by an admin, and one that was paid is refunded, never more than paid',
    ),
  },
  {
    name: 'three answers of a challenge',
    file: `${folder}/payment-answers.ts`,
    edits: [{ from: 'export const maxAnswers = 3', to: 'export const maxAnswers = 300' }],
    why: 'a one-time password is guessed',
    caughtBy: executor(
      'a payment with a challenge asks the person, three times at most, and goes on with the answer',
      'what a provider never received of a challenge is asked for again, and after three answers an operator settles the payment',
    ),
  },
  {
    name: 'the window of the keys of a provider',
    file: `${folder}/operations.ts`,
    edits: [{ from: 'windowMs: provider.windowMs', to: 'windowMs: Number.MAX_SAFE_INTEGER' }],
    why: 'a provider that has forgotten the key charges again',
    caughtBy: executor(
      'a payment whose end is not known keeps its reservation when the window is over, is looked up, and is settled by an operator alone',
    ),
  },
  {
    name: 'the least window of a provider',
    file: 'src/features/payments/providers/provider-schemas.ts',
    edits: [{ from: 'const minWindowMs = 300_000', to: 'const minWindowMs = 1' }],
    why: 'a request that was held up comes when its key is forgotten',
    caughtBy: testsOf('test/features/payments/providers.test.ts')(
      'a payment provider is refused with the field and the remedy',
    ),
  },
  {
    name: 'the businesses of a provider',
    file: 'src/features/payments/providers/provider-rows.ts',
    edits: [{ from: '(tenants IS NULL OR $2 = ANY(tenants))', to: '$2::text IS NOT NULL' }],
    why: 'a business pays by the account of another',
    caughtBy: testsOf('test/features/payments/providers.test.ts')(
      'a payment provider ends once, and takes no new payments then',
    ),
  },
]
