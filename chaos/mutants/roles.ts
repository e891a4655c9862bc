import { type Mutant, testsOf } from './mutant.ts'

const roles = testsOf('test/app/http/roles.test.ts')
const composed = testsOf('test/docs/compose.test.ts')

/** What a token or a login may not do, because it is another one's. */
export const roleMutants: readonly Mutant[] = [
  {
    name: 'the role of a token',
    file: 'src/app/http/plumbing/auth.ts',
    edits: [{ from: 'principal.roles.includes(role)', to: 'true' }],
    why: 'an agent of others submits, approves and deletes',
    caughtBy: roles('a token of one role opens the routes of this role and no other one'),
  },
  {
    name: 'A2A has a role of its own',
    file: 'src/features/a2a/a2a.routes.ts',
    edits: [{ from: "'agent', 'callAgent'", to: "'submit', 'callAgent'" }],
    why: "an agent's token is the proxy's",
    caughtBy: roles('a token of an agent opens A2A alone, and A2A opens to no other role'),
  },
  {
    name: 'the caller of a task of A2A',
    file: 'src/features/a2a/server/messages.ts',
    edits: [{ from: ' || session_id !== toSessionId(caller, contextId)', to: '' }],
    why: 'an agent reads, answers and cancels the tasks of another',
    caughtBy: testsOf('test/features/a2a/a2a.test.ts')(
      "an agent of protocol '1.0' by 'JSONRPC' finds no task of another caller, also where both use one context id",
    ),
  },
  {
    name: 'passkeys and consents have a role of their own',
    file: 'src/features/payments/consent.routes.ts',
    edits: [{ after: "app.post('/v1/users/:id/passkeys'", from: "'consent'", to: "'submit'" }],
    why: 'a token that submits enrols its own passkey for any user and pays in their name',
    caughtBy: roles(
      'a token without the role "consent" enrols no passkey and approves nothing; without "delete" it deletes nothing',
    ),
  },
  {
    name: 'deletions have a role of their own',
    file: 'src/app/http/sessions.routes.ts',
    edits: [{ from: "'delete',\n", to: "'submit',\n" }],
    why: 'a token that submits deletes the sessions of any user',
    caughtBy: roles(
      'a token without the role "consent" enrols no passkey and approves nothing; without "delete" it deletes nothing',
    ),
  },
  {
    name: 'the API may ask for the demo profile',
    file: 'src/features/payments/migrations/20261127_08_payments.sql',
    edits: [
      {
        from: 'ON FUNCTION accepts_placeholders TO mason_admin, mason_api',
        to: 'ON FUNCTION accepts_placeholders TO mason_api',
      },
    ],
    why: 'with a login each, the page of a demo consent is an internal error',
    caughtBy: testsOf('test/features/payments/consent/consent.test.ts')(
      'a consent of a demo is shown as a page and to a surface, with the login of the API alone',
    ),
  },
  {
    name: 'providers are created one at a time',
    file: 'src/features/payments/providers/provider-rows.ts',
    edits: [{ from: `await sql.query("SELECT pg_advisory_xact_lock(hashtext('mason.providers'))")`, to: '' }],
    why: 'a demo provider and one that moves money are active beside each other',
    caughtBy: testsOf('test/features/payments/providers.test.ts')(
      'a payment provider of demos and one that moves money, created at once, are never both active',
    ),
  },
  {
    name: 'a login without a default password',
    file: 'compose.yaml',
    edits: [{ from: ':?of the login of the API. Make one - openssl rand -hex 24}', to: ':-mason}' }],
    why: 'who reaches the database is the API by a password that everyone knows',
    caughtBy: composed(
      'a compose file has no default password: the owner, each login and Redis have one of their own',
    ),
  },
  {
    name: 'an image by its digest',
    file: 'compose.yaml',
    edits: [
      {
        after: 'image: redis:',
        from: '@sha256:',
        to: '-sha256:',
      },
    ],
    why: 'who can push a tag runs beside the database',
    caughtBy: composed('a compose file names each image of others by its digest'),
  },
]
