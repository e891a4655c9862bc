import { type Database, queryOne } from '../../infra/database/database.ts'
import type { Log } from '../../state/ports/log.ts'
import { isObject } from '../mandates/tokens/encoding.ts'
import { signJws } from '../mandates/tokens/jws.ts'
import { parseJson } from '../providers/json-exchange.ts'
import type { ReceiptSigner } from './receipts.ts'

/**
 * The agent card that a text is. Null: it is none of this server, not canonical or no text at all; nothing else is signed on request,
 * and no row may throw, since it would be taken again before all others.
 */
const readCard = (text: unknown, issuer: string): Record<string, unknown> | null => {
  const card = typeof text === 'string' ? parseJson(text) : null
  if (!isObject(card) || JSON.stringify(card) !== text) return null
  const { supportedInterfaces: interfaces, skills, capabilities } = card
  const isOurs =
    Array.isArray(interfaces) &&
    interfaces.length > 0 &&
    interfaces.every(
      (one) => isObject(one) && typeof one.url === 'string' && one.url.startsWith(`${issuer}/a2a/agents/`),
    )
  return isOurs && Array.isArray(skills) && isObject(capabilities) ? card : null
}

/** Signs the next agent card that has no signatures, in each version of the protocol. False: there is none. */
export const signNextCard = async (
  database: Database,
  { issuer, signingKey }: ReceiptSigner,
  log: Log,
): Promise<boolean> => {
  const row = await queryOne<{ tenant: string; payload: unknown; text: string }>(
    database,
    `SELECT tenant, payload, payload::text AS text FROM agent_cards WHERE payload IS NOT NULL AND signatures IS NULL LIMIT 1`,
    [],
  )
  if (!row) return false
  const key = await signingKey()
  const signatures: Record<string, unknown> = {}
  for (const [version, text] of Object.entries(isObject(row.payload) ? row.payload : {})) {
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
