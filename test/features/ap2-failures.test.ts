import { expect, test } from 'vitest'
import { explainFailure } from '../../src/features/ap2-failures.ts'

test.each([
  ['Unauthorized Request: Missing shopping_agent_id.', 'who buys'],
  ["Unauthorized Request: Unknown agent 'x'.", 'does not know this shopper'],
  ['Missing cart_id.', 'which cart'],
  ['Missing shipping_address.', 'shipping address'],
  ['CartMandate not found for cart_id: c', 'no longer has the cart'],
  ['Missing risk_data for context_id: c', 'no longer knows this conversation'],
  ['Missing payment_mandate.', 'no payment mandate'],
  ['Missing risk_data.', 'needs risk data'],
  ['No payment processor found for method: CARD', 'choose another payment method'],
  ['Challenge response incorrect.', 'wrong too often'],
  ['An error occurred: Invalid token', 'token is not valid any more'],
])('"%s" is explained to the person in other words', (says, words) => {
  for (const text of [says, `shop refused: ${says}`]) {
    expect(explainFailure([text])).toContain(words)
    expect(explainFailure(['Something else.', text])).not.toContain(says)
  }
})

test('an extension that a peer requires is explained where the protocol says it, not in words of a shop', () => {
  const says = 'this agent requires an extension: send the header A2A-Extensions'
  expect(explainFailure([`shop refused: ${says}`])).toContain('this version of AP2')
  expect(explainFailure(['The extension cord is sold out.'])).toBeNull()
})

test('other words are explained by nothing', () => {
  expect(explainFailure(['The moon is full.'])).toBeNull()
})
