import { type Mutant, testsOf } from './mutant.ts'

const file = 'src/features/payments/providers/card.ts'
const operations = testsOf('test/features/payments/providers/card.test.ts')
const answers = testsOf('test/features/payments/providers/card-answers.test.ts')
const webhooks = testsOf('test/features/payments/providers/card-webhooks.test.ts')

/** What keeps the answers and webhooks of a provider from being taken for more than they are. */
export const providerMutants: readonly Mutant[] = [
  {
    name: 'the signature of webhooks of providers',
    file,
    edits: [{ from: 'timingSafeEqual(signature, expected)', to: 'true' }],
    why: 'anyone reports a payment as made',
    caughtBy: webhooks('a webhook with another body, id, time or secret than was signed is not genuine'),
  },
  {
    name: 'the window of webhooks of providers',
    file,
    edits: [{ from: '<= toleranceS', to: '<= Number.MAX_VALUE' }],
    why: 'a webhook of last year is sent again when its id has been deleted',
    caughtBy: webhooks('a webhook of more than 300 s ago or ahead is not genuine'),
  },
  {
    name: 'the secret of webhooks of providers',
    file,
    edits: [{ from: 'webhookKey.length < 24', to: 'false' }],
    why: 'with an empty secret anyone signs',
    caughtBy: webhooks(
      'a provider without a webhook secret is refused, since with an empty one anyone could sign',
    ),
  },
  {
    name: 'the amount that a provider confirms',
    file: 'src/features/payments/providers/provider.ts',
    edits: [{ from: 'currency === amount.currency && minor === amount.minor', to: 'true' }],
    why: 'another amount than the mandate allows counts as paid',
    caughtBy: [
      ...testsOf('test/features/payments/providers/provider.test.ts')(
        'the check of an answer of a provider accepts what was asked, and refuses every other amount and currency',
      ),
      ...operations(
        'the card provider does not take an answer with another amount for a success, nor a conflict for a refusal',
      ),
      ...answers('an answer of a card provider that makes no sense is never a success and never a refusal'),
    ],
  },
  {
    name: 'the check of an answer to a card operation',
    file,
    edits: [{ from: 'if (error !== null)', to: 'if (error === undefined)' }],
    why: 'a provider that answers nonsense is believed',
    caughtBy: operations(
      'the card provider does not take an answer with another amount for a success, nor a conflict for a refusal',
    ),
  },
  {
    name: 'a refusal that says that it did not act',
    file,
    edits: [{ from: ' || refusal?.acted !== false', to: ' || refusal === undefined' }],
    why: 'the reservation is freed although the money may have moved',
    caughtBy: answers(
      'an answer of a card provider that makes no sense is never a success and never a refusal',
    ),
  },
  {
    name: 'a refusal of the answer of a challenge',
    file,
    edits: [{ from: 'refusals: [402]', to: 'refusals: [400, 402, 404, 422]' }],
    why: 'an answer that comes a second time declines a payment that was made',
    caughtBy: answers(
      'an answer of a card provider to the answer of a challenge declines the payment by 402 alone: other refusals are of the answer',
    ),
  },
  {
    name: 'the key of an answer',
    file,
    edits: [{ from: 'data.key !== key', to: 'false' }],
    why: 'the success of one payment settles another',
    caughtBy: answers(
      'an answer of a card provider that makes no sense is never a success and never a refusal',
      'an answer of a card provider to a look-up says null for an unknown key alone, not for the 404 of a proxy',
    ),
  },
  {
    name: 'the 404 that names the key',
    file,
    edits: [{ from: "refusalSchema.safeParse(body).data?.error.code === 'unknown_key'", to: 'true' }],
    why: 'a proxy says that a payment was never made',
    caughtBy: answers(
      'an answer of a card provider to a look-up says null for an unknown key alone, not for the 404 of a proxy',
    ),
  },
  {
    name: 'the lease at the first byte of a payment',
    file,
    edits: [{ from: 'beforeSend: checkLease', to: 'beforeSend: () => {}' }],
    why: 'an executor that was frozen sends what another one has sent',
    caughtBy: operations('the card provider sends nothing when the lease is gone at the first byte'),
  },
  {
    name: 'the idempotency key of a payment',
    file,
    edits: [
      {
        from: "headers: { 'idempotency-key': key }",
        to: "headers: { 'idempotency-key': String(Math.random()) }",
      },
    ],
    why: 'a request that is sent again charges again',
    caughtBy: operations('the card provider takes a payment once under its key, and looks it up'),
  },
  {
    name: 'redirects of a provider',
    file: 'src/features/payments/providers/json-exchange.ts',
    edits: [{ from: 'maxRedirects: 0', to: 'maxRedirects: 5' }],
    why: 'the key of a provider goes to another address',
    caughtBy: answers(
      'an answer of a card provider that makes no sense is never a success and never a refusal',
    ),
  },
  {
    name: 'the length of an answer of a provider',
    file: 'src/features/payments/providers/json-exchange.ts',
    edits: [{ from: 'if (size <= maxBodyBytes) continue', to: 'if (size > 0) continue' }],
    why: 'a provider fills the memory of the executor',
    caughtBy: answers(
      'an answer of a card provider that makes no sense is never a success and never a refusal',
    ),
  },
  {
    name: 'the characters of a reference of a provider',
    file,
    edits: [{ from: '.regex(/^\\P{Cc}*$/u)', to: '.regex(/^/u)' }],
    why: 'a payment whose reference cannot be stored is asked for again and again',
    caughtBy: answers(
      'an answer of a card provider that makes no sense is never a success and never a refusal',
    ),
  },
  {
    name: 'the payment of an answer of a provider',
    file,
    edits: [
      {
        from: 'payment !== null && answer.provider_ref !== null && answer.provider_ref !== payment',
        to: 'payment === undefined',
      },
    ],
    why: 'the refund of another payment counts as this one',
    caughtBy: answers('an answer of a card provider about another payment is no answer to a later operation'),
  },
  {
    name: 'the id of a webhook has no dot',
    file,
    edits: [{ from: '/^[\\w-]{1,200}$/.test(id)', to: '/^[\\w.-]{1,200}$/.test(id)' }],
    why: 'a webhook is sent again under another id and time',
    caughtBy: webhooks('a webhook whose border between id and time is moved is not genuine'),
  },
  {
    name: 'the words of a provider',
    file,
    edits: [{ from: 'reason: toReason(refusal.code)', to: 'reason: JSON.stringify(refusal)' }],
    why: 'a provider writes into the prompt of the agent',
    caughtBy: answers(
      'an answer of a card provider is a refusal where a 4xx says that it did not act, without the words of the provider',
    ),
  },
]
