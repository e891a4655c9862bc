import { type Mutant, testsOf } from './mutant.ts'

const passkeys = testsOf('test/features/payments/consent/passkeys.test.ts')
const refused = passkeys(
  'a passkey is refused from another origin or site, without user verification, and for another challenge; the link stays good',
)
const consents = testsOf('test/features/payments/consent/consent.test.ts')
const notVerified = consents(
  'a consent is not verified from another origin, site or frame, without user verification, for other bytes, or by a foreign passkey',
)
const surfaces = consents(
  'a surface of the business is not believed with a key that is not trusted, was revoked, or is for something else, nor for other bytes',
)
const brokenTexts = consents(
  'a consent is not asked for with an id of broken characters, a wrong offset, or texts that are too long to sign',
)
const decision = 'src/features/payments/consent/decide-consents.ts'
const file = 'src/features/payments/consent/passkeys.ts'

/** What keeps another person from signing payments. */
export const consentMutants: readonly Mutant[] = [
  {
    name: 'user verification when a passkey is enrolled',
    file,
    edits: [{ from: 'requireUserVerification: true', to: 'requireUserVerification: false' }],
    why: 'who finds an unlocked device has a passkey',
    caughtBy: refused,
  },
  {
    name: 'the origin of an enrolment',
    file,
    edits: [
      {
        from: 'expectedOrigin: origin,',
        to: "expectedOrigin: JSON.parse(atob(response.response.clientDataJSON.replaceAll('-', '+').replaceAll('_', '/'))).origin,",
      },
    ],
    why: 'a page of another site enrols a passkey',
    caughtBy: refused,
  },
  {
    name: 'the one use of a link',
    file: 'src/features/payments/consent/links.ts',
    edits: [{ from: 'AND used_at IS NULL AND', to: 'AND' }],
    why: 'who finds an old link enrols a passkey, or answers a second time',
    caughtBy: passkeys('a passkey is enrolled once by a link, also by two requests at the same time'),
  },
  {
    name: 'the end of a link',
    file: 'src/features/payments/consent/links.ts',
    edits: [{ from: 'AND used_at IS NULL AND expires_at > clock_timestamp()', to: 'AND used_at IS NULL' }],
    why: 'an old link is good for ever',
    caughtBy: passkeys(
      'a passkey is refused after the link has expired, and a page that was opened before is of no use',
    ),
  },
  {
    name: 'the purpose of a link',
    file: 'src/features/payments/consent/links.ts',
    edits: [{ from: 'AND purpose = $2 AND', to: 'AND $2::text IS NOT NULL AND' }],
    why: 'who gets a consent link enrols a passkey with it',
    caughtBy: passkeys('a link for a consent enrols no passkey'),
  },
  {
    name: 'user verification of a consent',
    file: decision,
    edits: [{ from: 'requireUserVerification: true', to: 'requireUserVerification: false' }],
    why: 'who finds an unlocked device pays',
    caughtBy: notVerified,
  },
  {
    name: 'the origin of a consent',
    file: decision,
    edits: [
      {
        from: 'expectedOrigin: origin,',
        to: "expectedOrigin: [origin, 'https://pay.example.evil'],",
      },
    ],
    why: 'a page of another site gets a signature',
    caughtBy: notVerified,
  },
  {
    name: 'the challenge of a consent',
    file: decision,
    edits: [
      {
        from: 'expectedChallenge: hashText(content),',
        to: 'expectedChallenge: () => content.length > 0,',
      },
    ],
    why: 'a passkey approves other bytes than those that were shown',
    caughtBy: notVerified,
  },
  {
    name: 'the user of a passkey',
    file: decision,
    edits: [{ from: 'AND tenant = $2 AND user_id = $3 FOR UPDATE', to: "AND $2 || $3 <> '' FOR UPDATE" }],
    why: 'another user approves the payment',
    caughtBy: notVerified,
  },
  {
    name: 'the bytes that a surface signed',
    file: decision,
    edits: [
      {
        from: "if (signature.split('.')[1] !== Buffer.from(content).toString('base64url'))",
        to: "if (content === '')",
      },
    ],
    why: 'the approval of one payment approves another',
    caughtBy: surfaces,
  },
  {
    name: 'the role of a surface',
    file: decision,
    edits: [{ from: "'trusted-surface', findKeys", to: "'merchant', findKeys" }],
    why: 'a merchant approves its own payments',
    caughtBy: surfaces,
  },
  {
    name: 'the merchant of a consent',
    file: 'src/features/payments/consent/consents.ts',
    edits: [
      {
        from: 'known ?? (await readConsent(sql, tenant, request, audience))',
        to: 'known ?? { offer_ends: null }',
      },
    ],
    why: 'a person is asked to pay a merchant that the business does not trust',
    caughtBy: consents(
      'a consent is not asked for where no trusted merchant signed what is paid, it is over, or another one would be paid',
    ),
  },
  {
    name: 'who is paid, as a consent shows it',
    file: 'src/features/payments/consent/offers.ts',
    edits: [{ from: 'payee_issuer: offer,', to: 'payee_issuer: facts.payee,' }],
    why: 'a person approves a name, and another account is paid',
    caughtBy: testsOf('test/features/payments/consent/consent.test.ts')(
      'a surface of the business reads the bytes and what they say, signs them, and its approval becomes a mandate, once',
    ),
  },
  {
    name: 'one open consent of a run',
    file: 'src/features/payments/consent/consents.ts',
    edits: [{ from: 'if (!row || row.open)', to: 'if (!row)' }],
    why: 'a person is flooded until they sign',
    caughtBy: consents(
      'a consent is asked for once at a time in a run, five times an hour of a user, and for mandates that fit only',
    ),
  },
  {
    name: 'five consents of a user in an hour',
    file: 'src/features/payments/consent/consents.ts',
    edits: [{ from: 'const maxAnHour = 5', to: 'const maxAnHour = 500' }],
    why: 'a person is asked until they sign',
    caughtBy: consents(
      'a consent is asked for once at a time in a run, five times an hour of a user, and for mandates that fit only',
    ),
  },
  {
    name: 'the frame of a consent',
    file: decision,
    edits: [{ from: 'if (isFramed(answer))', to: 'if (answer === null)' }],
    why: 'a page of another site lays itself over what is signed',
    caughtBy: notVerified,
  },
  {
    name: 'the counter of a passkey',
    file: decision,
    edits: [{ from: 'counter: Number(passkey.counter)', to: 'counter: 0' }],
    why: 'a copy of a passkey pays',
    caughtBy: consents(
      'a consent is not verified for changed bytes, by the assertion of another consent, or when the counter goes back',
    ),
  },
  {
    name: 'the order of links made at once',
    file: 'src/features/payments/consent/consents.ts',
    edits: [
      {
        from: "      await sql.query('SELECT FROM consents WHERE consent_id = $1 FOR NO KEY UPDATE', [ref_id])\n",
        to: '',
      },
    ],
    why: 'an older link to the consent goes on opening',
    caughtBy: consents('a consent has one link that opens, the last, of several that are made at once'),
  },
  {
    name: 'the warning of a sum',
    file: 'src/features/payments/consent/content.ts',
    edits: [{ from: 'checkCartSum(readCart.value.contents).length === 0', to: 'readCart.ok' }],
    why: 'a user approves a total that the items do not explain',
    caughtBy: consents('a consent says that items do not add up to the total that is paid'),
  },
  {
    name: 'the characters of ids',
    file: 'src/features/payments/mandates/ids.ts',
    edits: [{ from: '.refine(isStorableId, {', to: ".refine((id) => id !== '', {" }],
    why: 'a consent is approved that no database can hold, or two ids are one',
    caughtBy: brokenTexts,
  },
  {
    name: 'the offset of an expiry',
    file: 'src/features/payments/mandates/calendar.ts',
    edits: [{ from: 'if (!isDay && !hasPossibleOffset(text)) return null', to: '' }],
    why: 'a cart is paid beyond its time',
    caughtBy: brokenTexts,
  },
  {
    name: 'texts that are too long to sign',
    file: 'src/features/payments/consent/consents.ts',
    edits: [{ from: '+ maxEnvelope > maxTokenLength', to: '+ maxEnvelope > Infinity' }],
    why: 'a user approves what no executor can sign',
    caughtBy: brokenTexts,
  },
]
