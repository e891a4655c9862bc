/** The roles of AP2 that an agent can have. */
export const ap2Roles = ['merchant', 'shopper', 'credentials-provider', 'payment-processor'] as const

/** The URIs of the AP2 extension: that of its document, that of every sample, and two of earlier drafts. One means all. */
export const ap2Uris = [
  'https://github.com/google-agentic-commerce/ap2/tree/v0.1',
  'https://github.com/google-agentic-commerce/ap2/v1',
  'https://google-a2a.github.io/A2A/ext/payments/v1',
  'https://google-a2a.github.io/A2A/extensions/payments/v1',
]
/** Those that cards and requests name. */
export const currentAp2Uris = ap2Uris.slice(0, 2)
