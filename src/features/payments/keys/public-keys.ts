import { z } from 'zod'
import type { Sql } from '../../../state/ports/sql.ts'

/** The public part of a key that Mason signs with. */
export const publicSigningKeySchema = z.strictObject({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.string(),
  y: z.string(),
  kid: z.string(),
  alg: z.literal('ES256'),
  use: z.literal('sig'),
})
/** See `publicSigningKeySchema`. */
export type PublicSigningKey = z.infer<typeof publicSigningKeySchema>

/** More than a rotation a day for a year would end. */
const maxKeys = 400

/** The public keys that Mason's receipts are signed with, the one in use first: also those that have ended, whose receipts stay valid. */
export const listSigningKeys = async (sql: Sql): Promise<PublicSigningKey[]> => {
  const { rows } = await sql.query<{ kid: string; x: string; y: string }>(
    `SELECT kid, x, y FROM payment_keys WHERE purpose = 'signing'
     ORDER BY ended_at DESC NULLS FIRST LIMIT ${maxKeys}`,
  )
  return rows.map(({ kid, x, y }) => ({ kty: 'EC', crv: 'P-256', x, y, kid, alg: 'ES256', use: 'sig' }))
}
