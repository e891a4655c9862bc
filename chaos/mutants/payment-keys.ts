import { type Mutant, testsOf } from './mutant.ts'

const logins = testsOf('test/infra/database/logins.test.ts')
const keys = testsOf('test/features/payments/keys.test.ts')
const providers = testsOf('test/features/payments/providers.test.ts')
const attack = testsOf('test/features/payments/attack.test.ts')
const login = 'src/infra/database/server-databases.ts'
const alone = logins(
  'the logins of processes the executor does not start while its login can become another, or that of a worker can become the executor',
)

/** What keeps the login, the keys and the secrets of the executor of payments its own. */
export const paymentKeyMutants: readonly Mutant[] = [
  {
    name: 'the login of a worker that can become the executor',
    file: login,
    edits: [{ from: 'if (intruder !== undefined)', to: 'if (intruder === null)' }],
    why: 'a worker that is taken over reads the secrets of providers',
    caughtBy: alone,
  },
  {
    name: 'the login of the executor that can become another',
    file: login,
    edits: [{ from: 'if (others.length > 0) refuse', to: 'if (others.length > 99) refuse' }],
    why: 'the executor works with the login of a worker',
    caughtBy: alone,
  },
  {
    name: 'the payment key in other processes',
    file: 'src/infra/config/config.ts',
    edits: [{ from: "role === 'payments' || database.kind === 'embedded'", to: 'role' }],
    why: 'a worker holds the key of the executor',
    caughtBy: testsOf('test/infra/config/config.test.ts')(
      'the settings of the executor of payments reach no other process of a server, whatever its environment has',
    ),
  },
  {
    name: 'the purpose of a sealed text',
    file: 'src/features/payments/keys/sealed-texts.ts',
    edits: [{ from: 'if (protectedHeader.use !== purpose)', to: 'if (protectedHeader.use === undefined)' }],
    why: 'a secret that is copied to another row is sent to its address',
    caughtBy: keys(
      'the keys of the executor refuse a sealed text for another use, a changed one, and one to an unknown key',
    ),
  },
  {
    name: 'the address that the key of a provider is sealed for',
    file: 'src/features/payments/providers/provider-rows.ts',
    edits: [{ from: 'api_key ${baseUrl}`', to: 'api_key ${baseUrl.slice(0, 8)}`' }],
    why: 'who changes the address of a provider receives its key',
    caughtBy: providers(
      'a payment provider needs its key again for a new address, and the sealed one is sent to no other',
    ),
  },
  {
    name: 'the columns of the private keys of the executor',
    file: 'src/features/payments/migrations/20261127_08_payments.sql',
    edits: [
      { from: 'GRANT SELECT (created_at, ended_at, kid, purpose, x, y) ON', to: 'GRANT SELECT, INSERT ON' },
    ],
    why: 'a worker reads the sealed private keys, or publishes a key of its own',
    caughtBy: keys('the keys of the executor are no rows that the API or a worker can read, add or change'),
  },
  {
    name: 'the rows of providers that workers do not see',
    file: 'src/features/payments/migrations/20261127_08_payments.sql',
    edits: [
      {
        after: 'only_the_api ON payment_providers',
        from: "pg_has_role(session_user, 'mason_admin', 'MEMBER')",
        to: 'true',
      },
    ],
    why: 'a worker reads where the payments of all businesses go',
    caughtBy: attack(
      'a stolen login (on servers only: PGlite is one session of one user) of a worker reads no secret of payments and moves no money',
    ),
  },
  {
    name: 'no providers that workers add',
    file: 'src/features/payments/migrations/20261127_08_payments.sql',
    edits: [
      {
        after: 'only_the_api ON payment_providers',
        from: "WITH CHECK ((SELECT pg_has_role(session_user, 'mason_admin', 'MEMBER')))",
        to: 'WITH CHECK (true)',
      },
    ],
    why: 'a worker adds a provider of its own for the payments of all businesses',
    caughtBy: attack(
      'a stolen login (on servers only: PGlite is one session of one user) of a worker reads no secret of payments and moves no money',
    ),
  },
  {
    name: 'the key pairs that a rotation replaces',
    file: 'src/features/payments/keys/payment-keys.ts',
    edits: [{ from: 'AND master_key <> $1 RETURNING', to: 'AND master_key = $1 RETURNING' }],
    why: 'a leaked payment key opens what is sealed after its rotation',
    caughtBy: keys(
      'the keys of the executor are rotated as the master key is: what is sealed opens before, meanwhile and after, and a second rotation does nothing',
    ),
  },
  {
    name: 'the user of a secret answer',
    file: 'src/features/payments/keys/sealed-texts.ts',
    edits: [
      { from: '[business_id, user_id, payment_id, question]', to: '[business_id, payment_id, question]' },
    ],
    why: 'a worker charges the card of another user',
    caughtBy: testsOf('test/features/payments/run.test.ts')(
      'a run that pays charges no token that was answered for another payment, or by another user, whatever a worker writes',
    ),
  },
  {
    name: 'the payment of a secret answer',
    file: 'src/features/payments/keys/sealed-texts.ts',
    edits: [{ from: '[business_id, user_id, payment_id, question]', to: '[business_id, user_id, question]' }],
    why: 'a token pays what it was not given for',
    caughtBy: testsOf('test/features/payments/secret-questions.test.ts')(
      'a secret question takes a text of 1 to 200 characters that fits its schema, once, and gives the call what the executor alone can read',
    ),
  },
  {
    name: 'the question of a secret answer',
    file: 'src/features/payments/keys/sealed-texts.ts',
    edits: [
      { from: '[business_id, user_id, payment_id, question]', to: '[business_id, user_id, payment_id]' },
    ],
    why: 'the answer to one question is used for another',
    caughtBy: testsOf('test/features/payments/secret-questions.test.ts')(
      'a secret question takes a text of 1 to 200 characters that fits its schema, once, and gives the call what the executor alone can read',
    ),
  },
  {
    name: 'the business of a secret answer',
    file: 'src/features/payments/keys/sealed-texts.ts',
    edits: [{ from: '[business_id, user_id, payment_id, question]', to: '[user_id, payment_id, question]' }],
    why: 'a token of one business pays in another',
    caughtBy: testsOf('test/features/payments/secret-questions.test.ts')(
      'a secret question takes a text of 1 to 200 characters that fits its schema, once, and gives the call what the executor alone can read',
    ),
  },
]
