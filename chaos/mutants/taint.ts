import { type Mutant, testsOf } from './mutant.ts'

const runTests = testsOf('test/features/payments/run.test.ts')

/** What keeps a model's words out of a payment; `prompts.ts` has the labels of results. */
export const taintMutants: readonly Mutant[] = [
  {
    name: 'no argument for payee or amount',
    file: 'src/features/payments/tools/create-payment-mandate.tool.ts',
    edits: [{ from: 'z.strictObject({', to: 'z.looseObject({' }],
    why: 'a model that names a payee or an amount does not read that it decides neither',
    caughtBy: runTests(
      'a run that pays has no argument for payee, amount or currency: a call that names one is refused',
    ),
  },
  {
    name: 'the method of a checkout',
    file: 'src/features/payments/runs/signed-cart.ts',
    edits: [{ from: "chooseMethod(['card'], method)", to: "method ?? 'card'" }],
    why: 'the words of a model are signed, and shown to the person who signs',
    caughtBy: runTests(
      'a run that pays asks no person about a cart that no trusted merchant signed, that was changed, or that is not there',
    ),
  },
  {
    name: 'offers that are results',
    file: 'src/features/payments/tools/purchase.ts',
    edits: [{ from: 'readPlannedCalls(one).length === 0', to: 'readPlannedCalls(one).length >= 0' }],
    why: 'what a model wrote into a call is taken for an offer',
    caughtBy: testsOf('test/features/payments/tools/purchase.test.ts')(
      'findPurchaseCart takes the latest offer in a result, and none that a model wrote into a call',
    ),
  },
]
