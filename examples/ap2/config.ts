import { createPrivateKey, createPublicKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import type { SigningKey } from '../../src/payments/mandates/tokens/keys.ts'

const jwk = z.looseObject({ kty: z.string(), crv: z.string(), x: z.string(), y: z.string() })

/** What an agent is started with: `tsx examples/ap2/main.ts merchant --config merchant.json`. README.md describes it. */
const configSchema = z.strictObject({
  name: z.string().min(1),
  issuer: z.string().min(1),
  port: z.int().min(0).max(65535),
  books: z.string().min(1),
  key: jwk.extend({ kid: z.string(), d: z.string() }),
  audiences: z.array(z.string()).min(1),
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
export type Self = z.output<typeof configSchema> & {
  signing: SigningKey & { kid: string }
  /** The key that others check its signatures with. */
  publicKey: Record<string, unknown>
  /** In seconds since 1970, by the clock of the configuration. */
  now(): number
}

/** Reads a configuration. Throws with the field that is wrong. */
export const openSelf = (config: unknown): Self => {
  const read = configSchema.safeParse(config)
  if (!read.success) throw new Error(`the configuration is wrong: ${z.prettifyError(read.error)}`)
  const self = read.data
  const key = createPrivateKey({ key: self.key, format: 'jwk' })
  const { kid } = self.key
  const shift = self.clock === undefined ? 0 : Date.parse(self.clock) - Date.now()
  return {
    ...self,
    signing: { key, kid },
    publicKey: { ...createPublicKey(key).export({ format: 'jwk' }), kid, alg: 'ES256', use: 'sig' },
    now: () => Math.floor((Date.now() + shift) / 1000),
  }
}

/** Of the file that `--config` names. */
export const readConfig = (): Self => {
  const { values } = parseArgs({ allowPositionals: true, options: { config: { type: 'string' } } })
  if (values.config === undefined) throw new Error('name the configuration: --config FILE')
  return openSelf(JSON.parse(readFileSync(values.config, 'utf8')))
}
