import { type Mutant, testsOf } from './mutant.ts'

const agreement = testsOf('test/features/payments/agreement.test.ts')(
  'mason ap2 verify and a checker written apart from it agree on random mandates, valid ones and others',
)
const tokens = 'src/features/payments/mandates/tokens'
const trust = testsOf('test/features/payments/trust.test.ts')

/** What keeps a payment from being decided by a key, or a mandate, that does not count. */
export const paymentMutants: readonly Mutant[] = [
  {
    name: 'the revocation of a trusted key',
    file: 'src/features/payments/trust/trust.ts',
    edits: [{ from: 'WHEN revoked_at IS NOT NULL', to: 'WHEN false' }],
    why: 'a stolen key goes on paying',
    caughtBy: trust(
      'a key that ends is revoked in every row that has it, also after its end, and never trusted again',
    ),
  },
  {
    name: 'the end of a trusted key',
    file: 'src/features/payments/trust/trust.ts',
    edits: [{ from: 'WHEN valid_to <= clock_timestamp()', to: 'WHEN false' }],
    why: 'a key is good beyond its time',
    caughtBy: trust(
      'a key that ends is refused from the next statement on, and its row says since when',
      'a trusted key is valid in its time by the clock of the database',
    ),
  },
  {
    name: 'the role of a trusted key',
    file: 'src/features/payments/trust/trust.ts',
    edits: [{ from: 'AND for_role = ANY(roles)', to: 'AND for_role IS NOT NULL' }],
    why: 'a merchant signs what only a user may',
    caughtBy: trust('a trusted key is looked up by its kid, its issuer and its role'),
  },
  {
    name: 'the business of a trusted key',
    file: 'src/features/payments/trust/trust.ts',
    edits: [
      { from: 'WHERE (tenant IS NULL OR tenant = for_business)', to: 'WHERE (for_business IS NOT NULL)' },
    ],
    why: 'the issuer of one business decides the payments of another',
    caughtBy: trust(
      'a trusted key belongs to one business, or to all: another one neither lists it nor sees its row',
    ),
  },
  {
    name: 'a revocation of the key in every row',
    file: 'src/features/payments/trust/trusted-keys.ts',
    edits: [{ from: 'WHERE x = (SELECT x FROM trusted_keys WHERE key_id = $1)', to: 'WHERE key_id = $1' }],
    why: 'a revoked key goes on under another issuer or business',
    caughtBy: trust(
      'a key that ends is revoked in every row that has it, also after its end, and never trusted again',
    ),
  },
  {
    name: 'the trigger that keeps trusted keys',
    file: 'src/features/payments/migrations/20261127_08_payments.sql',
    edits: [{ from: 'IF NEW IS DISTINCT FROM ended THEN', to: 'IF false THEN' }],
    why: 'what a payment was decided by is edited afterwards',
    caughtBy: trust(
      'the rows of trusted keys never change and are never deleted, by an admin or by the owner',
    ),
  },
  {
    name: 'the login that writes trusted keys',
    file: 'src/features/payments/migrations/20261127_08_payments.sql',
    edits: [
      {
        after: 'only_the_api ON trusted_keys',
        from: "pg_has_role(session_user, 'mason_admin', 'MEMBER')",
        to: 'true',
      },
    ],
    why: 'a worker that was taken over trusts its own key',
    caughtBy: trust(
      'the rows of trusted keys are read by the login of workers, and written by that of the API alone (on servers only)',
    ),
  },
  {
    name: 'the algorithm of a token',
    file: `${tokens}/jws.ts`,
    edits: [{ from: "if (alg !== 'ES256') {", to: "if (typeof alg !== 'string') {" }],
    why: 'a token is signed with an algorithm that its sender chooses',
    caughtBy: agreement,
  },
  {
    name: 'headers that bring a key',
    file: `${tokens}/jws.ts`,
    edits: [{ from: 'if (name in header)', to: 'if (name === header)' }],
    why: 'a sender brings the key that its token is checked with',
    caughtBy: agreement,
  },
  {
    name: 'the signature of a root or a checkout',
    file: `${tokens}/chain.ts`,
    edits: [
      { from: 'const key = keys.find((candidate) => verifyJws(jws, candidate))', to: 'const key = keys[0]' },
    ],
    why: 'anybody writes mandates and checkouts',
    caughtBy: agreement,
  },
  {
    name: 'the signature of a hop',
    file: `${tokens}/chain.ts`,
    edits: [{ from: 'if (!verifyJws(jws, key))', to: 'if (!key)' }],
    why: 'an agent without the key closes the mandate of another',
    caughtBy: agreement,
  },
  {
    name: 'the hash of the hop before',
    file: `${tokens}/chain.ts`,
    edits: [{ from: 'whole !== hashText(before.text)', to: "whole === ''" }],
    why: 'a closed mandate is moved under another open one',
    caughtBy: agreement,
  },
  {
    name: 'the hash of the JWT before',
    file: `${tokens}/chain.ts`,
    edits: [{ from: 'jwt !== hashText(before.jws.text)', to: "jwt === ''" }],
    why: 'a closed mandate is moved under another open one',
    caughtBy: agreement,
  },
  {
    name: 'the type of a hop',
    file: `${tokens}/chain.ts`,
    edits: [
      {
        from: "if (!types[isLast ? 'terminal' : 'intermediate'].includes(jws.header.typ as string))",
        to: 'if (!jws.header.typ)',
      },
    ],
    why: 'another token of the agent becomes a hop',
    caughtBy: agreement,
  },
  {
    name: 'the vct of a mandate',
    file: `${tokens}/chain.ts`,
    edits: [{ from: 'if (vct === expected) return', to: 'if (String(vct).includes(kind)) return' }],
    why: 'an open mandate is taken as a closed one',
    caughtBy: agreement,
  },
  {
    name: 'the audience and nonce of the last hop',
    file: `${tokens}/claims.ts`,
    edits: [{ from: 'else if (expected && claim !== value)', to: 'else if (expected && !claim)' }],
    why: 'what was shown to one verifier is shown to another, or again',
    caughtBy: agreement,
  },
  {
    name: 'the audience and nonce of every hop',
    file: `${tokens}/claims.ts`,
    edits: [
      {
        from: "if (typeof claim !== 'string' || claim === '')",
        to: "if (expected && (typeof claim !== 'string' || claim === ''))",
      },
    ],
    why: 'a hop without an audience is passed on',
    caughtBy: testsOf('test/features/payments/mandates/tokens/chain.test.ts')(
      'a chain whose intermediate hop has no audience or nonce, or no key for the next, is refused (row 21)',
    ),
  },
  {
    name: 'the end of a token',
    file: `${tokens}/claims.ts`,
    edits: [{ from: 'time + clockSkewSeconds < now', to: 'false' }],
    why: 'an expired mandate pays',
    caughtBy: agreement,
  },
  {
    name: 'the beginning of a token',
    file: `${tokens}/claims.ts`,
    edits: [{ from: ': time > now + clockSkewSeconds', to: ': false' }],
    why: 'a mandate is used before its time',
    caughtBy: agreement,
  },
  {
    name: 'disclosures that are used once',
    file: `${tokens}/sd-jwt.ts`,
    edits: [{ from: 'if (seen.has(digest)) throw', to: "if (seen.has(digest) && digest === '') throw" }],
    why: 'one disclosure stands for several claims',
    caughtBy: agreement,
  },
  {
    name: 'disclosures that belong to a digest',
    file: `${tokens}/sd-jwt.ts`,
    edits: [
      {
        from: 'for (const { field } of left.values())',
        to: 'for (const { field } of [] as { field: string }[])',
      },
    ],
    why: 'claims without a signature travel with a token',
    caughtBy: agreement,
  },
  {
    name: 'the hash of the checkout',
    file: 'src/features/payments/mandates/verify/chains.ts',
    edits: [{ from: 'if (hash !== hashText(text))', to: 'if (hash === undefined)' }],
    why: 'another checkout is sent under the hash of the approved one',
    caughtBy: agreement,
  },
  {
    name: 'the signature of the merchant',
    file: 'src/features/payments/mandates/verify/chains.ts',
    edits: [{ from: "findSigner(jws, 'merchant', findKeys)", to: 'void findKeys' }],
    why: 'a checkout is forged',
    caughtBy: agreement,
  },
]
