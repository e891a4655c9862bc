import { queryOne } from '../../../infra/database/database.ts'
import { isJsonObject, parseJsonOrText } from '../../../infra/lib/json-text.ts'
import type { SignNextCard } from '../../core.ref.ts'

/**
 * The agent card that a text is. Null: it is none of this server, not canonical or no text at all; nothing else is signed on request,
 * and no row may throw, since it would be taken again before all others.
 */
const readCard = (text: unknown, issuer: string): Record<string, unknown> | null => {
  const card = typeof text === 'string' ? parseJsonOrText(text) : null
  if (!isJsonObject(card) || JSON.stringify(card) !== text) return null
  const { supportedInterfaces: interfaces, skills, capabilities } = card
  const isOurs =
    Array.isArray(interfaces) &&
    interfaces.length > 0 &&
    interfaces.every(
      (one) =>
        isJsonObject(one) && typeof one.url === 'string' && one.url.startsWith(`${issuer}/a2a/agents/`),
    )
  return isOurs && Array.isArray(skills) && isJsonObject(capabilities) ? card : null
}

/** Signs the next agent card that has no signatures, in each version of the protocol. False: there is none. */
export const signNextCard: SignNextCard = async (database, { issuer, sign }, log) => {
  const row = await queryOne<{ tenant: string; payload: unknown; text: string }>(
    database,
    `SELECT tenant, payload, payload::text AS text FROM agent_cards WHERE payload IS NOT NULL AND signatures IS NULL LIMIT 1`,
    [],
  )
  if (!row) return false
  const signatures: Record<string, unknown> = {}
  for (const [version, text] of Object.entries(isJsonObject(row.payload) ? row.payload : {})) {
    const card = readCard(text, issuer)
    if (!card) {
      log.warn({ business_id: row.tenant, version }, 'an agent card of another server is not signed')
      continue
    }
    signatures[version] = await sign(card)
  }
  await database.query(
    `UPDATE agent_cards SET signatures = $3 WHERE tenant = $1 AND payload::text = $2 AND signatures IS NULL`,
    [row.tenant, row.text, JSON.stringify(signatures)],
  )
  return true
}
