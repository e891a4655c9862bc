/** What the failures that agents of AP2 0.1 say word for word mean for the person, and what to do. The words themselves stay out. */
const reasons: readonly (readonly [RegExp, string])[] = [
  [/^Unauthorized Request: Missing shopping_agent_id/, 'it wants to know who buys; tell an operator'],
  [
    /^Unauthorized Request: Unknown agent/,
    'it does not know this shopper; an operator must register at the merchant',
  ],
  [/^Missing cart_id/, 'it does not know which cart; choose the cart again'],
  [/^Missing shipping_address/, 'it needs a shipping address; add one'],
  [/^CartMandate not found for cart_id/, 'it no longer has the cart; search and choose again'],
  [/^Missing risk_data for context_id/, 'it no longer knows this conversation; begin the purchase again'],
  [/^Missing risk_data/, 'it needs risk data, which were not sent; begin the purchase again'],
  [/^Missing payment_mandate/, 'it got no payment mandate; begin the payment again'],
  [
    /^No payment processor found for method/,
    'it has no processor for this way to pay; choose another payment method',
  ],
  [
    /^An error occurred: Invalid token/,
    'its payment token is not valid any more; choose the payment method again',
  ],
  [/^Challenge response incorrect/, 'the code was wrong too often; begin the payment again'],
  // an error of the protocol, since an extension cord may be sold out
  [/^\S{1,64} refused: .*extension/i, 'it does not take this version of AP2; tell an operator'],
]

/** What a failure of an agent means, as the end of "The agent refused: …"; null for words that Mason does not know. */
export const explainFailure = (texts: readonly string[]): string | null => {
  for (const text of texts)
    for (const [words, reason] of reasons)
      if (words.test(text) || words.test(text.replace(/^\S{1,64} refused: /, ''))) return reason
  return null
}
