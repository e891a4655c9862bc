import { type Mutant, testsOf } from './mutant.ts'

const executor = testsOf('test/features/payments/executor.test.ts')
const consents = testsOf('test/features/payments/consent/consent.test.ts')
const folder = 'src/features/payments/executor'
const decision = 'src/features/payments/consent/decide-consents.ts'

const unhashed = consents(
  'a consent is not asked for where the cart or the payment has a member that cannot be hashed, which is named',
)
const thrown = consents(
  'a consent whose decision throws does not hold up the others, is tried five times, and has failed then',
)
const crowd = consents(
  'a surface of the business of 40 users of three businesses is heard in one pass each, also while one approves two carts that cannot be hashed',
)
const loops = executor(
  'the loops of an executor go on beside one that throws each time, whose warnings are few, and beside one that never ends',
)
const silent = executor(
  'a payment whose end is not known because its look-up failed for all of the window (fail after) is unknown, its run goes on, and an operator settles it',
)
const pending = executor(
  'a payment whose end is not known is looked up while its provider says pending, and is settled by an operator after the window alone',
)
const unstorable = executor(
  'no money moves for an id or a limit that the database cannot hold: the order is declined, and nothing waits',
)
const totals = executor(
  'no money moves for a checkout without exactly one total that can be read, whatever the agent pays within its range',
)

/** What keeps one cart, consent or provider from stopping others, and what binds an amount. */
export const paymentEndMutants: readonly Mutant[] = [
  {
    name: 'the hash of a cart for which consent is asked',
    file: 'src/features/payments/mandates/verify/carts.ts',
    edits: [
      {
        from: 'if (crypto.length > 0 || hashReceived(wire, crypto) === null)',
        to: 'if (crypto.length > 0)',
      },
    ],
    why: 'a user approves a cart that no one can sign',
    caughtBy: unhashed,
  },
  {
    name: 'the hash of a payment for which consent is asked',
    file: 'src/features/payments/consent/content.ts',
    edits: [{ from: 'unhashed) === null)', to: "unhashed) === '')" }],
    why: 'a user approves a payment that no one can sign',
    caughtBy: unhashed,
  },
  {
    name: 'the next time of a consent whose decision threw',
    file: decision,
    edits: [
      {
        from: "next_at = clock_timestamp() + $2::int * interval '1 millisecond'",
        to: "next_at = next_at + 0 * $2::int * interval '1 millisecond'",
      },
    ],
    why: 'no other consent is decided while one throws',
    caughtBy: [...thrown, ...crowd],
  },
  {
    name: 'the end of a consent whose decision throws',
    file: decision,
    edits: [{ from: 'row.tries >= maxTries', to: 'row.tries < 0' }],
    why: 'its run waits for ever',
    caughtBy: [...thrown, ...crowd],
  },
  {
    name: 'a loop for each kind of work',
    file: `${folder}/start-executor.ts`,
    edits: [
      {
        from: 'const takePayments = async (): Promise<boolean> => {',
        to: 'const takePayments = async (): Promise<boolean> => {\n    await decideConsent()',
      },
    ],
    why: 'one consent stops the payments of all businesses',
    caughtBy: loops,
  },
  {
    name: 'the few warnings of a loop that fails',
    file: `${folder}/start-executor.ts`,
    edits: [{ from: 'if (Number.isInteger(Math.log2(++failures)))', to: 'if (++failures > 0)' }],
    why: 'the log is full of one error',
    caughtBy: loops,
  },
  {
    name: 'an agent card that is no JSON',
    file: 'src/features/a2a/server/card-signatures.ts',
    edits: [
      { from: "typeof text === 'string' ? parseJsonOrText(text) : null", to: 'JSON.parse(String(text))' },
    ],
    why: 'no other card is signed',
    caughtBy: executor('the loops of an executor sign the other agent cards beside rows that are none'),
  },
  {
    name: 'the end of a payment whose look-up fails',
    file: `${folder}/operations.ts`,
    edits: [
      {
        from: 'error instanceof UnclearPaymentError || silentMs < windowMs',
        to: 'error instanceof UnclearPaymentError || silentMs < 2 ** 50 + windowMs',
      },
    ],
    why: 'the run waits for ever, and its reservation stays',
    caughtBy: silent,
  },
  {
    name: 'that its provider was heard of lately',
    file: `${folder}/payment-executor.ts`,
    edits: [{ from: 'toDelayMs(payment.tries), answer !== null)', to: 'toDelayMs(payment.tries), false)' }],
    why: 'one look-up that fails makes a pending payment unknown',
    caughtBy: pending,
  },
  {
    name: 'an operator for what is sent',
    file: `${folder}/order-problems.ts`,
    edits: [{ from: '(age_ms ?? 0) >= windowMs', to: '(age_ms ?? 0) >= 2 ** 50 + windowMs' }],
    why: 'a payment that is pending for ever has no end',
    caughtBy: pending,
  },
  {
    name: 'the window before an operator settles what is sent',
    file: `${folder}/order-problems.ts`,
    edits: [{ from: '(age_ms ?? 0) >= windowMs', to: '(age_ms ?? 0) >= 0 * windowMs' }],
    why: 'a payment is settled while it is sent again',
    caughtBy: pending,
  },
  {
    name: 'values that the database refuses',
    file: `${folder}/reservation.ts`,
    edits: [{ from: '    if (isValueRefused(error)) return refuse([valueViolation()])\n', to: '' }],
    why: 'an order that can never be reserved is tried for ever',
    caughtBy: unstorable,
  },
  {
    name: 'the length of ids',
    file: 'src/features/payments/mandates/ids.ts',
    edits: [{ from: '  .max(maxIdChars)\n', to: '' }],
    why: 'a person approves what the database refuses',
    caughtBy: unstorable,
  },
  {
    name: 'the one total of a checkout',
    file: 'src/features/payments/mandates/v2/total.ts',
    edits: [{ from: 'if (listed.length !== 1)', to: 'if (listed.length === 0)' }],
    why: 'an agent pays another total than the one that was shown',
    caughtBy: totals,
  },
  {
    name: 'a total at all',
    file: 'src/features/payments/mandates/v2/total.ts',
    edits: [
      {
        from: "if (typeof total === 'string') return [",
        to: "if (typeof total === 'string') return []; else [",
      },
    ],
    why: 'an agent chooses the amount within its range',
    caughtBy: totals,
  },
  {
    name: "a cart's own id",
    file: 'src/features/payments/migrations/20261127_08_payments.sql',
    edits: [
      { from: 'CREATE UNIQUE INDEX payments_one_live_cart', to: 'CREATE INDEX payments_one_live_cart' },
    ],
    why: 'one cart is paid twice under two ids of its payment request',
    caughtBy: executor(
      'no money moves for a cart under a second id of its payment request, or a second cart under the same one, in either version',
    ),
  },
  {
    name: 'the digits of a preset',
    file: 'src/features/payments/mandates/json.ts',
    edits: [{ from: 'toDigits(value.source)', to: 'toDigits(String(Number(value.source)))' }],
    why: 'an agent changes digits that a double does not have',
    caughtBy: testsOf('test/features/payments/mandates/v2/constraints.test.ts')(
      'the constraints of an open payment mandate compare presets by their digits, however a number is written',
    ),
  },
  {
    name: 'an allowed payee that hides its id',
    file: 'src/features/payments/mandates/verify/chains.ts',
    edits: [{ from: 'concealed.includes(entry)', to: 'concealed.length < 0' }],
    why: 'who takes the name and the website of an allowed payee is paid',
    caughtBy: testsOf('test/features/payments/mandates/verify/chains.test.ts')(
      'a payment chain whose allowed payee hides its id allows nothing by it, also to who has its name and website',
    ),
  },
  {
    name: 'the window before an admin asks to settle what is sent',
    file: 'src/features/payments/payments-api.ts',
    edits: [{ from: "+ v.window_ms * interval '1 millisecond' <= clock_timestamp()", to: 'IS NOT NULL' }],
    why: 'an admin settles a payment that is being sent',
    caughtBy: testsOf('test/features/payments/routes.test.ts')(
      'an admin settles only a payment that is unknown or has an open operation, with who looked where',
    ),
  },
  {
    name: 'the total of a final cart',
    file: 'src/features/shopping/update-cart.tool.ts',
    edits: [
      { from: 'if (signed.total.minor === expected) return null', to: 'if (expected >= 0) return null' },
    ],
    why: 'a merchant changes the price between the offer and the cart that is signed',
    caughtBy: testsOf('test/features/shopping/update-cart.test.ts')(
      'another total is a change, unless the lines that were added account for it',
    ),
  },
]
