import { type Database, queryOne } from '../../infra/database/database.ts'
import type { Log } from '../../state/ports/log.ts'
import { isObject } from '../mandates/tokens/encoding.ts'
import { signJws } from '../mandates/tokens/jws.ts'
import type { ReceiptSigner } from './receipts.ts'

/** The agent card that a text is. Null: it is none of this server, or not canonical; nothing else is signed on request. */
const readCard = (text: string, issuer: string): Record<string, unknown> | null => {
  const card: unknown = JSON.parse(text)
  if (!isObject(card) || JSON.stringify(card) !== text) return null
  const { supportedInterfaces: interfaces, skills, capabilities } = card
  const isOurs =
    Array.isArray(interfaces) &&
    interfaces.length > 0 &&
    interfaces.every(({ url }) => String(url).startsWith(`${issuer}/a2a/agents/`))
  return isOurs && Array.isArray(skills) && isObject(capabilities) ? card : null
}

/** Signs the next agent card that has no signatures, in each version of the protocol. False: there is none. */
export const signNextCard = async (
  database: Database,
  { issuer, signingKey }: ReceiptSigner,
  log: Log,
): Promise<boolean> => {
  const row = await queryOne<{ tenant: string; payload: Record<string, string>; text: string }>(
    database,
    `SELECT tenant, payload, payload::text AS text FROM agent_cards WHERE payload IS NOT NULL AND signatures IS NULL LIMIT 1`,
    [],
  )
  if (!row) return false
  const key = await signingKey()
  const signatures: Record<string, unknown> = {}
  for (const [version, text] of Object.entries(row.payload)) {
    const card = readCard(text, issuer)
    if (!card) {
      log.warn({ business_id: row.tenant, version }, 'an agent card of another server is not signed')
      continue
    }
    const [header, , signature] = (await signJws(card, key, { typ: 'JOSE' })).split('.')
    signatures[version] = { protected: header, signature }
  }
  await database.query(
    `UPDATE agent_cards SET signatures = $3 WHERE tenant = $1 AND payload::text = $2 AND signatures IS NULL`,
    [row.tenant, row.text, JSON.stringify(signatures)],
  )
  return true
}
