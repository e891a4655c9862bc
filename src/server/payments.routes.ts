import { z } from 'zod'
import { type App, createDocs, respondsWith, type ServerContext } from './http/route.ts'

const describe = createDocs('payments')

const keySetSchema = z.strictObject({
  keys: z.array(
    z.strictObject({
      kty: z.literal('EC'),
      crv: z.literal('P-256'),
      x: z.string(),
      y: z.string(),
      kid: z.string(),
      alg: z.literal('ES256'),
      use: z.literal('sig'),
    }),
  ),
})

/** Payments as others see them: the keys of Mason's signatures. */
export const paymentsRoutes = (app: App, { runtime }: ServerContext): void => {
  app.get('/.well-known/ap2-jwks.json', {
    config: describe(null, 'getSigningKeys', 'Lists the public keys that receipts of Mason are signed with', {
      description:
        'A JWK Set (RFC 7517), the key in use first. Keys that have ended stay: what they signed is valid. A key that is missing can be at most 5 minutes old.',
      ...respondsWith(200, 'The keys', keySetSchema),
    }),
    handler: async (_request, reply) =>
      reply
        .header('cache-control', 'public, max-age=300')
        .send({ keys: await runtime.payments.signingKeys() }),
  })
}
