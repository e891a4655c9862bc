import { type Mutant, testsOf } from './mutant.ts'

const roles = testsOf('test/server/roles.test.ts')

/** What a token may not do, because it has another role. */
export const roleMutants: readonly Mutant[] = [
  {
    name: 'the role of a token',
    file: 'src/server/http/auth.ts',
    edits: [{ from: 'principal.roles.includes(role)', to: 'true' }],
    why: 'an agent of others submits, approves and deletes',
    caughtBy: roles('a token of one role opens the routes of this role and no other one'),
  },
  {
    name: 'A2A has a role of its own',
    file: 'src/server/a2a.routes.ts',
    edits: [{ from: "'agent', 'callAgent'", to: "'submit', 'callAgent'" }],
    why: "an agent's token is the proxy's",
    caughtBy: roles('a token of an agent opens A2A alone, and A2A opens to no other role'),
  },
  {
    name: 'passkeys and consents have a role of their own',
    file: 'src/server/consent.routes.ts',
    edits: [{ after: "app.post('/v1/users/:id/passkeys'", from: "'consent'", to: "'submit'" }],
    why: 'a token that submits enrols its own passkey for any user and pays in their name',
    caughtBy: roles(
      'a token without the role "consent" enrols no passkey and approves nothing; without "delete" it deletes nothing',
    ),
  },
  {
    name: 'deletions have a role of their own',
    file: 'src/server/sessions.routes.ts',
    edits: [{ from: "'delete',\n", to: "'submit',\n" }],
    why: 'a token that submits deletes the sessions of any user',
    caughtBy: roles(
      'a token without the role "consent" enrols no passkey and approves nothing; without "delete" it deletes nothing',
    ),
  },
]
