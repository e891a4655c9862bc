import { type Mutant, testsOf } from './mutant.ts'

const chainTests = testsOf('test/features/payments/mandates/tokens/chain.test.ts')
const verifyTests = testsOf('test/features/payments/mandates/verify/chains.test.ts')
const cartTests = testsOf('test/features/payments/mandates/verify/carts.test.ts')
const receiptTests = testsOf('test/features/payments/mandates/verify/receipts.test.ts')
const demoTests = testsOf('test/features/payments/demo.test.ts')
const executorTests = testsOf('test/features/payments/executor.test.ts')
const folder = 'src/features/payments/mandates'

/** What keeps a mandate from being swapped, hidden or used twice; `payments.ts` has what a second checker sees too. */
export const mandateMutants: readonly Mutant[] = [
  {
    name: 'exactly one hash of the hop before',
    file: `${folder}/tokens/chain.ts`,
    edits: [{ from: '(whole === undefined) === (jwt === undefined)', to: 'false' }],
    why: 'a hop that binds nothing is set under any mandate of the agent',
    caughtBy: chainTests('a chain with both bindings, or hops of the wrong type, is refused'),
  },
  {
    name: 'the identity of a token',
    file: `${folder}/tokens/chain.ts`,
    edits: [{ from: 'hashText(jws.signingInput)', to: 'hashText(jws.text)' }],
    why: 'the same mandate pays twice, with its mirrored signature',
    caughtBy: chainTests(
      'the identity of a chain is the same with the mirrored signature of its last hop, whose text is another',
    ),
  },
  {
    name: 'the checkout that is paid',
    file: `${folder}/verify/chains.ts`,
    edits: [{ from: 'last.content.transaction_id !== transactionId', to: 'false' }],
    why: 'the mandate of one checkout pays another',
    caughtBy: verifyTests(
      'a payment chain of another checkout, or without the hash of its open checkout mandate, is refused',
    ),
  },
  {
    name: 'no placeholder beside a provider that moves money',
    file: 'src/features/payments/migrations/20261127_08_payments.sql',
    edits: [{ from: ' AND bool_and(is_test)', to: '' }],
    why: 'unsigned carts and payments move money',
    caughtBy: demoTests(
      'the placeholders of the samples of AP2 0.1 pay nothing once a provider is active that moves money',
    ),
  },
  {
    name: 'the placeholder of this cart and payment',
    file: `${folder}/verify/carts.ts`,
    edits: [{ from: 'text === placeholder)', to: "text.startsWith('fake_'))" }],
    why: 'the demo profile takes the placeholder of another payment',
    caughtBy: demoTests(
      'the placeholders of the samples of AP2 0.1 pay once, and only for the cart and payment that they name',
    ),
  },
  {
    name: 'limits that are not disclosed',
    file: `${folder}/verify/chains.ts`,
    edits: [{ from: '...checkConcealed(hop), ', to: '' }],
    why: 'an agent hides a limit and passes it',
    caughtBy: verifyTests(
      'a payment chain that hides a constraint, or a claim that may be one, is refused; entries of lists may be hidden',
    ),
  },
  {
    name: 'the mandate that a receipt is about',
    file: `${folder}/verify/receipts.ts`,
    edits: [{ from: '!isReceiptOf(payload, references)', to: 'false' }],
    why: 'the receipt of one payment passes for that of another',
    caughtBy: receiptTests('a receipt about another mandate, of another key or not of its time is refused'),
  },
  {
    name: 'the hashes that the merchant and the user sign',
    file: `${folder}/verify/carts.ts`,
    edits: [{ from: 'if (!isHashOf(hash, value))', to: 'if (hash === value)' }],
    why: 'another cart is paid under the hash of the signed one',
    caughtBy: cartTests(
      'a signed cart with another .id is refused by its hash',
      'a signed payment mandate with another cart under the old hash, or another signature of the merchant, is refused',
    ),
  },
  {
    name: 'the key of the credential',
    file: `${folder}/verify/carts.ts`,
    edits: [{ from: 'if (!verifyJws(binding, key))', to: 'if (!key)' }],
    why: 'anyone pays with the credential of a user',
    caughtBy: cartTests(
      'a signed payment mandate that is not signed, by a placeholder, or by a key or credential of others is refused',
    ),
  },
  {
    name: 'the end of a cart',
    file: `${folder}/verify/carts.ts`,
    edits: [{ from: 'end >= now * 1000', to: 'true' }],
    why: 'a cart is paid at a price that no longer holds',
    caughtBy: cartTests('a signed payment mandate of a cart that is over is refused'),
  },
  {
    name: 'the issuer is paid in AP2 0.2',
    file: 'src/features/payments/executor/verify-order.ts',
    edits: [{ from: 'payee: { ...mandated.payee, id: merchant.issuer }', to: 'payee: mandated.payee' }],
    why: 'an agent or a merchant names the account that is paid',
    caughtBy: executorTests(
      'a payment is sent to the issuer of the key that signed, whatever id a mandate or a checkout names',
    ),
  },
  {
    name: 'an allowed merchant is the issuer',
    file: `${folder}/verify/payee.ts`,
    edits: [
      { from: 'if (allowed.some((entry) => toIssuerNames(entry).has(issuer))) return []', to: 'return []' },
    ],
    why: 'a merchant is paid under the id of one that the user allowed',
    caughtBy: executorTests(
      'no money moves for a merchant that signs a checkout under the id of one that open mandates allow',
    ),
  },
  {
    name: 'origins of web addresses alone',
    file: `${folder}/verify/payee.ts`,
    edits: [{ from: '/^https?:/i.test(address)', to: "address !== ''" }],
    why: 'one DID is paid in the place of another',
    caughtBy: testsOf('test/features/payments/consent/consent.test.ts')(
      'a consent is not asked for where no trusted merchant signed what is paid, it is over, or another one would be paid',
    ),
  },
  {
    name: 'one issuer of a merchant in limits',
    file: 'src/features/payments/consent/proposals.ts',
    edits: [{ from: 'if (other !== undefined)', to: "if (other === '')" }],
    why: 'the page shows one issuer and another one is paid',
    caughtBy: testsOf('test/features/payments/mandates/open-mandates.test.ts')(
      'a person who is not present is not asked for limits that no one could keep',
    ),
  },
]
