import { createPrivateKey } from 'node:crypto'
import { z } from 'zod'

const jwk = z.looseObject({ kty: z.string(), crv: z.string(), x: z.string(), y: z.string() })

/** What an agent is started with: `tsx examples/ap2/main.ts merchant --config merchant.json`. README.md describes it. */
const configSchema = z.strictObject({
  name: z.string().min(1),
  issuer: z.string().min(1),
  port: z.int().min(0).max(65535),
  books: z.string().min(1),
  key: jwk.extend({ kid: z.string(), d: z.string() }),
  audiences: z.tuple([z.string()], z.string()),
  trust: z.array(z.strictObject({ issuer: z.string(), kid: z.string(), roles: z.array(z.string()), jwk })),
  agents: z.record(z.string(), z.string()).default({}),
  shoppers: z.array(z.string()).default(['trusted_shopping_agent']),
  stock: z.record(z.string(), z.int().nonnegative()).default({}),
  unsigned_offers: z.boolean().default(false),
  placeholders: z.boolean().default(false),
  token_seconds: z.int().positive().default(300),
  clock: z.iso.datetime({ offset: true }).optional(),
})
/** The configuration of an agent, as it is in its file. */
export type AgentConfig = z.input<typeof configSchema>
/** What an agent knows of itself. */
export type Self = ReturnType<typeof openSelf>

/** Reads a configuration. Throws with the field that is wrong. */
export const openSelf = (config: unknown) => {
  const read = configSchema.safeParse(config)
  if (!read.success) throw new Error(`the configuration is wrong: ${z.prettifyError(read.error)}`)
  const self = read.data
  const { kid, kty, crv, x, y } = self.key
  const shift = self.clock === undefined ? 0 : Date.parse(self.clock) - Date.now()
  return {
    ...self,
    signing: { key: createPrivateKey({ key: self.key, format: 'jwk' }), kid },
    /** The key that others check its signatures with. */
    publicKey: { kty, crv, x, y, kid, alg: 'ES256', use: 'sig' },
    /** In seconds since 1970, by the clock of the configuration. */
    now: () => Math.floor((Date.now() + shift) / 1000),
  }
}
