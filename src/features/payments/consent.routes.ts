import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { businessQuery, createIdParams } from '../../routes/parameters.ts'
import { createDocs, type RouteDoc, respondsWith } from '../../routes/route.ts'
import { isMasonError } from '../../state/errors.ts'
import { defineRoutes } from '../definitions.ts'
import type { ConsentAnswer, SurfaceAnswer } from './consent/consents.ts'
import { consentFactsSchema } from './consent/content.ts'
import {
  consentPage,
  deadLinkPage,
  enrolmentPage,
  pageHeaders,
  pageScript,
  pageStyle,
} from './consent/pages.ts'
import { consentRef } from './payments.ref.ts'

const describe = createDocs('payments')

const linkParams = z.strictObject({ link: z.string().max(200).describe('The secret of a one-time link') })
const linkViewSchema = z.strictObject({
  url: z.string().describe('A page that is good once. Hand it to this user alone; it is a secret'),
  expires_at: z.string(),
})
const base64Url = z.string().regex(/^[\w-]+$/, 'must be base64url')

/** What `navigator.credentials.create()` made: `RegistrationResponseJSON` of WebAuthn. */
const registrationSchema = z
  .looseObject({
    id: base64Url.describe('The id of the credential'),
    rawId: base64Url.describe('The same'),
    type: z.literal('public-key').describe('public-key'),
    clientExtensionResults: z.looseObject({}).describe('Of extensions').default({}),
    response: z
      .looseObject({
        clientDataJSON: base64Url.describe('What the browser signed over'),
        attestationObject: base64Url.describe('The new public key'),
      })
      .describe('What the authenticator made'),
  })
  .meta({
    description: 'RegistrationResponseJSON of WebAuthn',
    examples: [
      {
        id: 'Zm9v',
        rawId: 'Zm9v',
        type: 'public-key',
        clientExtensionResults: {},
        response: { clientDataJSON: 'e30', attestationObject: 'oA' },
      },
    ],
  })

const openConsentSchema = z.strictObject({
  content: z.string().describe('The bytes to sign, in UTF-8, as they are'),
  facts: consentFactsSchema.describe('What the bytes say: show all of it'),
  expires_at: z.string(),
})

/** What a proxy sends that has a trusted surface of its own. */
const surfaceAnswerSchema = z
  .strictObject({
    signature: z
      .string()
      .max(600_000)
      .regex(/^[\w-]+\.[\w-]+\.[\w-]+$/, 'must be a compact JWS')
      .describe('The approval: a compact JWS (ES256, with `kid`) whose payload is the bytes of `content`')
      .optional(),
    refuse: z.literal(true).describe('true: the person refuses').optional(),
  })
  .refine(({ signature, refuse }) => signature === undefined || refuse === undefined, {
    path: ['refuse'],
    error: 'is sent beside a signature; send one of both',
  })
  .meta({ examples: [{ refuse: true }] })

/** What the page of a consent sends. */
const answerSchema = z
  .union([
    z.strictObject({
      approve: z
        .looseObject({
          id: base64Url.describe('The id of the passkey'),
          rawId: base64Url.describe('The same'),
          type: z.literal('public-key').describe('public-key'),
          response: z
            .looseObject({
              clientDataJSON: base64Url.describe('What the browser says'),
              authenticatorData: base64Url.describe('What the authenticator says'),
              signature: base64Url.describe('Over both'),
            })
            .describe('What the authenticator made'),
        })
        .describe('AuthenticationResponseJSON of WebAuthn'),
    }),
    z.strictObject({ refuse: z.literal(true).describe('true') }),
  ])
  .meta({ description: 'An assertion, or a refusal', examples: [{ refuse: true }] })

const page = (reply: FastifyReply, status: number, html: string): FastifyReply =>
  reply.code(status).headers(pageHeaders).send(html)

/** A page of a link, or the page that says that the link is not good. */
const sendPage = async (reply: FastifyReply, build: () => Promise<string>): Promise<FastifyReply> => {
  try {
    return page(reply, 200, await build())
  } catch (error) {
    if (isMasonError(error, 'not_found', 'invalid_request')) return page(reply, 404, deadLinkPage())
    throw error
  }
}

const html: Pick<RouteDoc, 'responses'> = {
  responses: { 200: { description: 'A page', type: 'text/html' } },
}

/** Passkeys and the pages that users open by one-time links. No link is logged or repeated: `requestPath` leaves it out. */
export default defineRoutes({
  needs: { consent: consentRef },
  add(app, { consent: { passkeys, consents } }, server) {
    app.post('/v1/users/:id/passkeys', {
      schema: { params: createIdParams('user'), querystring: businessQuery },
      config: describe(
        'consent',
        'createPasskeyLink',
        'Creates a one-time link to the page where a user adds a passkey',
        {
          description:
            'For the proxy that has authenticated this user. The link is good once, for 15 minutes. Mason stores its hash alone.',
          responses: { 201: { description: 'The link', schema: linkViewSchema } },
        },
      ),
      handler: async (request, reply) => {
        const businessId = server.callerOf(request).business_id
        return reply
          .code(201)
          .header('cache-control', 'no-store')
          .send(await passkeys.createLink(businessId, request.params.id))
      },
    })

    app.delete('/v1/users/:id/passkeys', {
      schema: { params: createIdParams('user'), querystring: businessQuery },
      config: describe(
        'delete',
        'deletePasskeys',
        'Deletes all passkeys and open links of a user, as after a theft',
        { responses: { 204: { description: 'They are deleted' } } },
      ),
      handler: async (request, reply) => {
        await passkeys.remove(server.callerOf(request).business_id, request.params.id)
        return reply.code(204).send()
      },
    })

    app.get('/passkeys/:link', {
      schema: { params: linkParams },
      config: describe(
        null,
        'getPasskeyPage',
        'The page of a one-time link, where a user adds a passkey',
        html,
      ),
      handler: ({ params: { link } }, reply) =>
        sendPage(reply, async () => {
          const { user_id, options } = await passkeys.open(link)
          return enrolmentPage(user_id, options)
        }),
    })

    app.post('/passkeys/:link', {
      schema: { params: linkParams, body: registrationSchema },
      config: describe(null, 'addPasskey', 'Adds the passkey that the page got, and uses the link up', {
        problems: ['already_exists', 'database_unavailable'],
        ...respondsWith(204, 'It is added'),
      }),
      handler: async ({ params: { link }, body }, reply) => {
        await passkeys.enrol(link, body as Parameters<typeof passkeys.enrol>[1])
        return reply.code(204).header('cache-control', 'no-store').send()
      },
    })

    app.post('/v1/payments/:id/consent', {
      schema: {
        params: createIdParams('payment'),
        querystring: businessQuery,
        body: surfaceAnswerSchema,
      },
      config: describe(
        'consent',
        'createConsentLink',
        'Creates a one-time link to the page where the user approves a payment, or takes what a surface of the business signed',
        {
          description:
            'For the proxy that has authenticated the user whom the run asks. Without a body: a link that is good once, until the consent expires; a new one ends those before. With a body: the answer, once. The executor verifies the signature by the keys that the business trusts then as `trusted-surface`.',
          bodyOptional: true,
          responses: {
            201: { description: 'The link', schema: linkViewSchema },
            204: { description: 'The answer is stored' },
          },
          problems: ['input_answered'],
        },
      ),
      handler: async (request, reply) => {
        const {
          params: { id },
          body,
        } = request
        const businessId = server.callerOf(request).business_id
        reply.header('cache-control', 'no-store')
        if (body.signature === undefined && body.refuse === undefined)
          return reply.code(201).send(await consents.createLink(businessId, id))
        await consents.sign(businessId, id, body as SurfaceAnswer)
        return reply.code(204).send()
      },
    })

    app.get('/v1/payments/:id/consent', {
      schema: { params: createIdParams('payment'), querystring: businessQuery },
      config: describe('consent', 'getConsent', 'Returns what the user is asked to sign for a payment', {
        description: 'For a proxy with a trusted surface of its own, which shows it and signs `content`.',
        ...respondsWith(200, 'The open consent', openConsentSchema),
        problems: ['input_answered'],
      }),
      handler: async (request, reply) =>
        reply
          .header('cache-control', 'no-store')
          .send(await consents.read(server.callerOf(request).business_id, request.params.id)),
    })

    app.get('/consent/:link', {
      schema: { params: linkParams },
      config: describe(
        null,
        'getConsentPage',
        'The page of a one-time link, where a user approves or refuses a payment',
        html,
      ),
      handler: ({ params: { link } }, reply) =>
        sendPage(reply, async () => {
          const { content, facts, options, expires_at } = await consents.open(link)
          return consentPage(content, facts, expires_at, options)
        }),
    })

    app.post('/consent/:link', {
      schema: { params: linkParams, body: answerSchema },
      config: describe(null, 'answerConsent', 'Stores what the page sends, once; the executor verifies it', {
        problems: ['input_answered', 'database_unavailable'],
        ...respondsWith(204, 'It is stored'),
      }),
      handler: async ({ params: { link }, body }, reply) => {
        await consents.answer(link, body as ConsentAnswer)
        return reply.code(204).header('cache-control', 'no-store').send()
      },
    })

    for (const [path, id, type, text] of [
      ['/consent.js', 'getPageScript', 'text/javascript', pageScript],
      ['/consent.css', 'getPageStyle', 'text/css', pageStyle],
    ] as const)
      app.get(path, {
        config: describe(null, id, 'Of the pages that users open', {
          responses: { 200: { description: 'The same for all pages', type } },
        }),
        handler: (_request, reply) =>
          reply.type(`${type}; charset=utf-8`).header('cache-control', 'public, max-age=300').send(text),
      })
  },
})
