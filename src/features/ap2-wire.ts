/** Names of the data parts of AP2 messages, as its A2A extension (0.1) and its samples (0.2) have them. */
export const ap2Keys = {
  intentMandate: 'ap2.mandates.IntentMandate',
  cartMandate: 'ap2.mandates.CartMandate',
  paymentMandate: 'ap2.mandates.PaymentMandate',
  paymentReceipt: 'ap2.PaymentReceipt',
  paymentMethod: 'payment_request.PaymentMethodData',
  contactAddress: 'contact_picker.ContactAddress',
  riskData: 'risk_data',
  shoppingAgentId: 'shopping_agent_id',
  userEmail: 'user_email',
  methodAlias: 'payment_method_alias',
  methodAliases: 'payment_method_aliases',
  token: 'token',
  cartId: 'cart_id',
  shippingAddress: 'shipping_address',
  challenge: 'challenge',
  challengeResponse: 'challenge_response',
  paymentMandateSdJwt: 'ap2.mandates.PaymentMandateSdJwt',
  checkoutMandateSdJwt: 'ap2.mandates.CheckoutMandateSdJwt',
  cart: 'ap2.cart',
  checkout: 'ap2.checkout',
  catalogSearch: 'catalog_search',
  checkoutHash: 'checkout_jwt_hash',
  /** Ours: AP2 0.2 has the receipt of a checkout, its samples send none over A2A. */
  checkoutReceipt: 'ap2.CheckoutReceipt',
} as const

/** The texts beside the data parts. Agents that route by words know these; those of 0.1 are of the wire. */
export const ap2Texts = {
  findProducts: "Find products that match the user's IntentMandate.",
  getAddress: "Get the user's shipping address.",
  updateCart: "Update the cart with the user's shipping address.",
  getMethods: "Get a filtered list of the user's payment methods.",
  getToken: "Get a payment credential token for the user's payment method.",
  sendMandate: 'This is the signed payment mandate',
  initiate: 'Initiate a payment',
  initiateWithChallenge: 'Initiate a payment. Include the challenge response.',
  challenge: 'Please provide the challenge response to complete the payment.',
  wrongChallenge: 'Challenge response incorrect.',
  getCredentials: 'Give me the payment method credentials for the given token.',
  receipt: 'Here is the payment receipt. No action is required.',
  success: "{'status': 'success'}",
  /** Of 0.2, whose messages over A2A are not specified: ours. */
  searchCatalog: "Find products that match the user's request.",
  createCheckout: 'Create a checkout for the cart.',
  completeCheckout: 'Complete the checkout.',
} as const

/** What a shopper says of itself where nothing else is set: its name at merchants, and risk data, which they refuse to miss. */
export const ap2Defaults = { shoppingAgentId: 'trusted_shopping_agent', riskData: 'none' } as const
