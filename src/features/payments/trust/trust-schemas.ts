import { z } from 'zod'
import { createPlainTextSchema, truncatedSchema } from '../../../state/resource-schema.ts'
import { businessIdSchema } from '../../../state/run-request.ts'
import { importPoint } from '../mandates/tokens/keys.ts'
import { attempt } from '../mandates/tokens/token-error.ts'

/** Bodies and views of the admin API for trusted keys: docs/contract.md, section 7. */

/** What a key may sign for: the roles of AP2, and the trusted surface on which a user signs. */
const trustRoleSchema = z.enum([
  'shopper',
  'merchant',
  'credentials-provider',
  'payment-processor',
  'trusted-surface',
])

const coordinate = z.string().regex(/^[\w-]{43}$/, 'must be 32 bytes in base64url: 43 characters')

const publicJwkSchema = z.strictObject({
  kty: z.literal('EC', 'must be EC').describe('EC'),
  crv: z.literal('P-256', 'must be P-256: AP2 signs with ES256 alone').describe('P-256'),
  x: coordinate.describe('The x coordinate, base64url'),
  y: coordinate.describe('The y coordinate, base64url'),
})

/** Members of a JWK that say nothing of its point. Those with an address or a certificate (x5u, x5c) are refused: neither is read. */
const otherMembers = ['kid', 'use', 'alg', 'key_ops', 'ext']
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

/** No message repeats a value: it may be a private key. */
const jwkInputSchema = z.looseObject(publicJwkSchema.shape).superRefine(
  (jwk, context) => {
    if (typeof jwk !== 'object' || jwk === null) return
    for (const name of Object.keys(jwk)) {
      const report = (message: string) => context.addIssue({ code: 'custom', path: [name], message })
      if (privateMembers.includes(name))
        report('is part of a private key, which its owner must send to no one; send kty, crv, x and y alone')
      else if (!(name in publicJwkSchema.shape) && !otherMembers.includes(name)) report('unknown field')
    }
    const point = publicJwkSchema.pick({ x: true, y: true }).strip().safeParse(jwk)
    if (point.success && !attempt([], () => importPoint(point.data.x, point.data.y, 'jwk')))
      context.addIssue({ code: 'custom', path: ['x'], message: 'is with y no point of P-256 in base64url' })
  },
  { when: () => true },
)

const time = z.iso
  .datetime({ offset: true, abort: true })
  .refine(
    (text) => Date.parse(text) >= 0 && Date.parse(text) < Date.UTC(10_000, 0),
    'must be from 1970 to 9999',
  )
const issuer = createPlainTextSchema(500).min(1)

const trustedKeyInputSchema = z
  .strictObject({
    business_id: businessIdSchema
      .nullable()
      .describe('Who trusts it; null: all businesses')
      .default('default'),
    issuer: issuer.describe('Whose key it is, as `iss` of its tokens says'),
    kid: createPlainTextSchema(200).min(1).describe('The id of the key, as the header of its tokens says'),
    roles: z.array(trustRoleSchema).min(1).describe('What the issuer may sign as'),
    jwk: jwkInputSchema.describe('The public key: an EC key on P-256'),
    valid_from: time.describe('From when on; absent: now').optional(),
    valid_to: time.nullable().describe('Until when; null: until it is ended').default(null),
  })
  .refine(({ jwk, kid }) => jwk.kid === undefined || jwk.kid === kid, {
    path: ['jwk', 'kid'],
    error: 'is not the `kid` beside it; send one of both, or the same twice',
  })

/** A trusted key as the admin API returns it. Times are ISO 8601 in UTC, by the clock of the database. */
const trustedKeyViewSchema = z.strictObject({
  id: z.string(),
  /** Null: all businesses trust it. */
  business_id: z.string().nullable(),
  issuer: z.string(),
  kid: z.string(),
  roles: z.array(trustRoleSchema),
  jwk: publicJwkSchema,
  status: z.enum(['valid', 'not_yet_valid', 'ended', 'revoked']),
  valid_from: z.string(),
  valid_to: z.string().nullable(),
  revoked_at: z.string().nullable(),
  created_at: z.string(),
  truncated: truncatedSchema,
})

/** The body and the view of trusted keys: no field of one changes. */
export const trustedKeySchemas = {
  input: trustedKeyInputSchema.meta({
    examples: [
      {
        issuer: 'https://shop.example',
        kid: 'shop-2026',
        roles: ['merchant'],
        // RFC 7515, appendix A.3
        jwk: {
          kty: 'EC',
          crv: 'P-256',
          x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
          y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
        },
      },
    ],
  }),
  view: trustedKeyViewSchema,
}
/** Query of the list. */
export const trustedKeysFilter = z.strictObject({
  business_id: businessIdSchema
    .describe('Those that this business trusts, also those of all businesses')
    .optional(),
  issuer: issuer.describe('Of this issuer only').optional(),
})

/** See `trustRoleSchema`. */
export type TrustRole = z.infer<typeof trustRoleSchema>
/** See `trustedKeyInputSchema`. */
export type TrustedKeyInput = z.infer<typeof trustedKeyInputSchema>
/** See `trustedKeyViewSchema`. */
export type TrustedKeyView = z.infer<typeof trustedKeyViewSchema>
