/** What is shown of a secret: enough to tell keys apart, and never more than half of it. */
export const lastOf = (secret: string): string =>
  secret.slice(secret.length - Math.min(4, Math.floor(secret.length / 2)))
