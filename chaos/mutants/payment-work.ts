import { type Mutant, testsOf } from './mutant.ts'

const executor = testsOf('test/features/payments/executor.test.ts')
const races = testsOf('test/features/payments/races.test.ts')
const rows = testsOf('test/features/payments/rows.test.ts')
const attack = testsOf('test/features/payments/attack.test.ts')(
  'a stolen login (on servers only: PGlite is one session of one user) of a worker reads no secret of payments and moves no money',
)
const providers = testsOf('test/features/payments/providers.test.ts')
const consents = testsOf('test/features/payments/consent/consent.test.ts')
const locks = testsOf('test/engine/runs/wait-locks.test.ts')
const folder = 'src/features/payments/executor'
const ledger = 'src/features/payments/migrations/20261127_08_payments.sql'
const webhooks = executor(
  'a payment whose end is not known succeeds by a genuine webhook, which counts once, in whatever order and number webhooks come',
)
const alone = executor('an executor has an order and its payment alone until its lease is over')
const oneSecret = executor('a payment is ordered once by a call, and leaves no secret behind')

const webhookTests = testsOf('test/features/payments/routes.test.ts')(
  'POST /payments/webhooks/{provider_id} takes 3,000 of one provider in a minute, counts those that break off, and says when to send again',
)

/** Guards of the executor's own work: who has a payment, what a webhook may say, and which bytes are not kept. */
export const paymentWorkMutants: readonly Mutant[] = [
  {
    name: 'the lease of an order to pay',
    file: `${folder}/work-queue.ts`,
    edits: [
      {
        from: "'next_at <= clock_timestamp() AND (lease_until IS NULL OR lease_until < clock_timestamp())'",
        to: "'next_at <= clock_timestamp()'",
      },
    ],
    why: 'two executors carry out one order beside each other',
    caughtBy: alone,
  },
  {
    name: 'the lease of a payment that is claimed by its id',
    file: `${folder}/work-queue.ts`,
    edits: [
      {
        from: 'WHERE payment_id = $1 AND (lease_until IS NULL OR lease_until < clock_timestamp()) RETURNING',
        to: 'WHERE payment_id = $1 RETURNING',
      },
    ],
    why: 'a webhook takes the payment from who is sending it',
    caughtBy: alone,
  },
  {
    name: 'the fence of an order that is refused',
    file: `${folder}/settlement.ts`,
    edits: [
      {
        after: 'const endWaitStatement',
        from: 'WHERE order_id = $1 AND takes = $2 AND',
        to: 'WHERE order_id = $1 AND $2::int > 0 AND',
      },
      {
        after: 'const refuseStatement',
        from: 'WHERE order_id = $1 AND takes = $2 AND',
        to: 'WHERE order_id = $1 AND $2::int > 0 AND',
      },
    ],
    why: 'an executor that was frozen refuses what another one is paying',
    caughtBy: executor('an executor that was frozen refuses nothing that another has taken'),
  },
  {
    name: 'a refusal locks the run before the order',
    file: `${folder}/settlement.ts`,
    edits: [
      {
        after: 'const endWaitStatement',
        from: 'FROM payment_orders\n  WHERE order_id = $1 AND takes = $2 AND done_at IS NULL`',
        to: 'FROM (SELECT * FROM payment_orders\n  WHERE order_id = $1 AND takes = $2 AND done_at IS NULL FOR UPDATE) o`',
      },
    ],
    why: 'a cancel and a refusal wait for each other',
    caughtBy: races(
      'a run that is canceled while its payment is being refused waits for it, and neither is refused by the database',
    ),
  },
  {
    name: 'the provider of a webhook',
    file: `${folder}/payment-executor.ts`,
    edits: [{ from: 'WHERE p.provider_id = $2 AND CASE', to: 'WHERE $2::text IS NOT NULL AND CASE' }],
    why: 'one provider settles the payments of another',
    caughtBy: webhooks,
  },
  {
    name: 'a webhook of before the answer',
    file: `${folder}/payment-answers.ts`,
    edits: [{ from: "source === 'webhook' && operation.answers > 0", to: 'operation.answers < 0' }],
    why: 'a person is asked again for a code that they have given',
    caughtBy: executor(
      'a payment whose end is not known asks nothing again for a webhook that was sent before the person answered',
    ),
  },
  {
    name: 'what is authorized asks nothing more',
    file: `${folder}/payment-answers.ts`,
    edits: [
      { from: '(payment.is_authorized || payment.challenge', to: '(payment.challenge' },
      { from: "source === 'webhook' && operation.answers > 0", to: 'operation.answers < 0' },
    ],
    why: 'a webhook that comes late turns an authorized payment into one that waits for a code',
    caughtBy: executor(
      'a payment whose end is not known asks nothing again for a webhook that was sent before the person answered',
    ),
  },
  {
    name: 'webhooks that are not genuine are not kept',
    file: `${folder}/webhook-inbox.ts`,
    edits: [
      { from: "headers = CASE WHEN $2 = 'not_genuine' THEN '{}'", to: "headers = CASE WHEN false THEN '{}'" },
      { from: "body = CASE WHEN $2 = 'not_genuine' THEN ''", to: "body = CASE WHEN false THEN ''" },
    ],
    why: 'anyone fills the disk',
    caughtBy: webhooks,
  },
  {
    name: 'the text of a key id',
    file: 'src/features/payments/mandates/tokens/chain.ts',
    edits: [{ from: "typeof text === 'string' && !isStorable(text)", to: 'text === null' }],
    why: 'one token holds up all payments that are verified beside it',
    caughtBy: executor(
      'no money moves for a key id that the database cannot hold, and payments that are verified beside it go on',
    ),
  },
  {
    name: 'the bytes of an operation that is over',
    file: `${folder}/settlement.ts`,
    edits: [
      {
        from: "request = CASE WHEN $operationStatus = 'done' THEN NULL ELSE request END",
        to: 'request = request',
      },
    ],
    why: 'credentials stay in the database',
    caughtBy: oneSecret,
  },
  {
    name: 'the credential of an order that is reserved',
    file: `${folder}/reservation.ts`,
    edits: [
      {
        from: 'SET done_at = clock_timestamp(), sealed = NULL FROM',
        to: 'SET done_at = clock_timestamp() FROM',
      },
    ],
    why: 'credentials stay in the database',
    caughtBy: oneSecret,
  },
  {
    name: 'what was verified is in the row of a payment',
    file: ledger,
    edits: [
      {
        from: "CONSTRAINT payments_whole CHECK (status IN ('declined', 'released') OR (",
        to: 'CONSTRAINT payments_whole CHECK (true OR (',
      },
    ],
    why: 'a mistake of the executor pays without a mandate',
    caughtBy: rows(
      'rows of payments have what was verified before money moves, and give back at most what was paid',
    ),
  },
  {
    name: 'refunds in the database',
    file: ledger,
    edits: [{ from: 'CHECK (refunded_minor <= amount_minor)', to: 'CHECK (true)' }],
    why: 'two refunds at once give back more than was paid',
    caughtBy: rows(
      'rows of payments have what was verified before money moves, and give back at most what was paid',
    ),
  },
  {
    name: 'reservations are never below zero',
    file: ledger,
    edits: [
      {
        from: 'reserved_minor bigint NOT NULL DEFAULT 0 CHECK (reserved_minor >= 0)',
        to: 'reserved_minor bigint NOT NULL DEFAULT 0',
      },
    ],
    why: 'what is released twice allows more than the budget',
    caughtBy: rows('rows of payments with budgets refuse a sum over the maximum, whatever a statement says'),
  },
  {
    name: 'steps of a payment are never changed',
    file: ledger,
    edits: [
      {
        from: 'GRANT SELECT, INSERT ON payment_events',
        to: 'GRANT SELECT, INSERT, UPDATE ON payment_events',
      },
    ],
    why: 'an executor that is taken over rewrites the trail',
    caughtBy: rows('rows of payments with events never change, also not by the executor'),
  },
  {
    name: 'the columns of orders that are hidden',
    file: ledger,
    edits: [
      {
        after: 'ON payment_orders TO mason_payments;',
        from: 'SELECT (call_index, canceled_at, created_at, done_at, kind, open_mandate_id, order_id, outcome, payment_id, plan_seq, run_id, sent_at,\n    tenant)',
        to: 'SELECT',
      },
    ],
    why: 'a worker reads the mandates of others',
    caughtBy: rows('rows of payments with money, secrets or nonces are hidden from workers and the API'),
  },
  {
    name: 'passkeys are added by the API alone',
    file: 'src/features/payments/migrations/20261127_08_payments.sql',
    edits: [
      {
        after: 'only_the_api ON passkeys',
        from: "WITH CHECK ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')))",
        to: 'WITH CHECK (true)',
      },
      {
        after: 'only_the_api ON passkeys',
        from: "USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')))",
        to: 'USING (true)',
      },
    ],
    why: 'a worker that is taken over enrols a passkey of its own',
    caughtBy: attack,
  },
  {
    name: 'consents are answered by the API alone',
    file: 'src/features/payments/migrations/20261127_08_payments.sql',
    edits: [
      {
        after: 'only_the_api ON consents',
        from: "USING ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')))",
        to: 'USING (true)',
      },
    ],
    why: 'a worker that is taken over answers for a person',
    caughtBy: attack,
  },
  {
    name: 'secrets of providers are read by the executor alone',
    file: 'src/features/payments/migrations/20261127_08_payments.sql',
    edits: [
      {
        from: 'GRANT SELECT ON payment_providers TO mason_payments',
        to: 'GRANT SELECT ON payment_providers TO mason_admin, mason_worker, mason_payments',
      },
    ],
    why: 'an API process that is taken over copies the sealed secrets',
    caughtBy: providers('a payment provider has secrets that neither the API nor a worker can read'),
  },
  {
    name: 'a process for test providers moves no money',
    file: 'src/features/payments/providers/provider-rows.ts',
    edits: [{ from: 'if (testOnly && !row.test)', to: 'if (testOnly && row.test === null)' }],
    why: 'an embedded process, whose key lies beside its data, moves money',
    caughtBy: providers('a payment provider moves money on a database server only'),
  },
  {
    name: 'a change of a provider writes what it changes alone',
    file: 'src/features/payments/providers/provider-rows.ts',
    edits: [{ from: 'change.window_ms ?? null,', to: 'change.window_ms ?? before.window_ms,' }],
    why: 'of two admins the later takes back what the earlier changed',
    caughtBy: providers('a payment provider keeps what another admin changes at the same moment'),
  },
  {
    name: 'a consent is answered once, also by a surface',
    file: 'src/features/payments/consent/consents.ts',
    edits: [
      {
        from: 'WHERE consent_id = $1 AND ${openSql} RETURNING consent_id',
        to: 'WHERE consent_id = $1 RETURNING consent_id',
      },
      { from: 'if (!row.is_open) throw answeredError()', to: '' },
    ],
    why: 'a refusal becomes an approval',
    caughtBy: consents(
      'a surface of the business reads the bytes and what they say, signs them, and its approval becomes a mandate, once',
    ),
  },
  {
    name: 'texts of others on a page are escaped',
    file: 'src/features/payments/consent/pages.ts',
    edits: [{ from: 'const shown = escapeHtml(text).replace', to: 'const shown = text.replace' }],
    why: 'a merchant writes what the page says about the payment',
    caughtBy: testsOf('test/features/payments/consent/pages.test.ts')(
      'a text of others on a page is escaped, and isolated in its direction',
    ),
  },
  {
    name: 'a link is stored as its hash',
    file: 'src/features/payments/consent/links.ts',
    edits: [
      {
        from: '[sha256(link), tenant, user_id, purpose, ref_id, expires_at]',
        to: '[link, tenant, user_id, purpose, ref_id, expires_at]',
      },
    ],
    why: 'who reads the table signs for a person',
    caughtBy: testsOf('test/features/payments/consent/passkeys.test.ts')(
      'a link is stored as its hash alone, and no response repeats it',
    ),
  },
  {
    name: 'who ends a wait',
    file: 'migrations/20261127_02_engine.sql',
    edits: [{ from: 'REVOKE EXECUTE ON FUNCTION end_wait FROM PUBLIC;', to: '' }],
    why: 'a token of a business ends the waits of its runs',
    caughtBy: locks('only a worker across businesses ends a wait, and an API process does not'),
  },
  {
    name: 'a wait for a payment does not expire',
    file: 'migrations/20261127_02_engine.sql',
    edits: [{ from: " CHECK (due_at IS NULL OR kind <> 'payment')", to: '' }],
    why: 'a run goes on as if it had not paid, and pays again',
    caughtBy: locks('starting never lets a payment expire'),
  },
  {
    name: 'who starts a wait has the run',
    file: 'src/engine/runs/waits.ts',
    edits: [
      {
        from: "AND epoch = $epoch AND status = 'running'`",
        to: "AND $epoch::int >= 0 AND status = 'running'`",
      },
    ],
    why: 'a worker that was frozen orders a payment beside its successor',
    caughtBy: locks('starting happens once, with its wait or not at all, and only for who has the run'),
  },
  {
    name: 'a call starts its wait once',
    file: 'src/engine/runs/waits.ts',
    edits: [{ from: 'if (is_new) await start?.(sql, wait)', to: 'await start?.(sql, wait)' }],
    why: 'a call that is tried again orders again',
    caughtBy: locks('starting happens once, with its wait or not at all, and only for who has the run'),
  },
  {
    name: 'the end of a pending payment',
    file: 'src/features/payments/executor/payment-answers.ts',
    edits: [{ from: '(operation.age_ms ?? 0) > maxPendingMs', to: 'answer === null' }],
    why: 'a run waits for ever for a payment that stays pending',
    caughtBy: testsOf('test/features/payments/executor.test.ts')(
      'a payment whose end is not known because its provider says pending for 15 minutes ends the wait and says so, and goes on being looked up',
    ),
  },
  {
    name: 'the form of a webhook',
    file: 'src/features/payments/payments-api.ts',
    edits: [{ from: 'if (!isWebhookForm(headers, clock.now()))', to: "if (address === '')" }],
    why: 'unsigned floods fill the inbox and use up the limit',
    caughtBy: webhookTests,
  },
  {
    name: 'the limit of webhooks by address',
    file: 'src/features/payments/payments-api.ts',
    edits: [{ from: '`${providerId} ${address}`', to: 'providerId' }],
    why: 'a flood from elsewhere shuts the provider out',
    caughtBy: webhookTests,
  },
]
