import { z } from 'zod'
import { businessQuery, createIdParams } from '../../routes/parameters.ts'
import { createDocs, respondsWith } from '../../routes/route.ts'
import { MasonError } from '../../state/errors.ts'
import { idSchema } from '../../state/run-request.ts'
import { defineRoutes } from '../definitions.ts'
import { publicSigningKeySchema } from './keys/public-keys.ts'
import { trailSchema } from './ledger/payment-queries.ts'
import { paymentsRef } from './payments.ref.ts'

const describe = createDocs('payments')

const keySetSchema = z.strictObject({ keys: z.array(publicSigningKeySchema) })

const maxWebhookBytes = 256 * 1024
/** Of headers, these say who calls this server, not who signed. */
const ownHeaders = ['authorization', 'cookie', 'proxy-authorization']

const readWebhook = async (body: unknown): Promise<Uint8Array> => {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length
    if (bytes > maxWebhookBytes)
      throw new MasonError('payload_too_large', `a webhook has at most ${maxWebhookBytes} bytes`, {
        remedy: 'let the provider send the reference alone; Mason looks the payment up',
      })
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const throwNoSuch = (what: string, id: string): never => {
  throw new MasonError('not_found', `there is no ${what} "${id}"`)
}

/** Payments as businesses, providers and verifiers of receipts see them. */
export default defineRoutes({
  needs: { payments: paymentsRef },
  add(app, { payments }, server) {
    app.get('/.well-known/ap2-jwks.json', {
      config: describe(
        null,
        'getSigningKeys',
        'Lists the public keys that receipts of Mason are signed with',
        {
          description:
            'A JWK Set (RFC 7517), the key in use first. Keys that have ended stay: what they signed is valid. A key that is missing can be at most 5 minutes old.',
          ...respondsWith(200, 'The keys', keySetSchema),
        },
      ),
      handler: async (_request, reply) =>
        reply.header('cache-control', 'public, max-age=300').send({ keys: await payments.signingKeys() }),
    })

    app.get('/v1/payments/:id', {
      schema: { params: createIdParams('payment'), querystring: businessQuery },
      config: describe('read', 'getPayment', 'Returns a payment with all that is known of it', {
        description:
          'The mandates as they were received and who signed them, each request to the provider, each check with its time and key, and the signed receipt. Amounts are in minor units.',
        ...respondsWith(200, 'The payment', trailSchema),
      }),
      handler: async (request) => {
        const { id } = request.params
        return (
          (await payments.readTrail(server.callerOf(request).business_id, id)) ?? throwNoSuch('payment', id)
        )
      },
    })

    app.post('/payments/webhooks/:provider_id', {
      schema: {
        params: z.strictObject({ provider_id: idSchema.describe('The id of the payment provider') }),
      },
      config: describe(null, 'receivePaymentWebhook', 'Takes a webhook of a payment provider', {
        description:
          'The body is stored as it came, at most 256 KB, where it has the headers of a signed webhook of the last 5 minutes (Standard Webhooks); its signature is verified later, by the executor of payments, which alone has the secret.',
        streamed: true,
        problems: ['not_found', 'too_many_requests', 'invalid_request'],
        ...respondsWith(204, 'It is stored'),
      }),
      handler: async ({ params: { provider_id: id }, headers, body, ip }, reply) => {
        const entries = Object.entries(headers).filter(([name]) => !ownHeaders.includes(name))
        const texts = entries.map(([name, value]) => [name, String(value)])
        const read = () => readWebhook(body)
        const isStored = await payments.receiveWebhook(id, Object.fromEntries(texts), read, ip)
        if (!isStored) throwNoSuch('payment provider', id)
        return reply.code(204).send()
      },
    })
  },
})
