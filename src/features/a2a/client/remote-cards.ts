import { AgentCard } from '@a2a-js/sdk'
import { DefaultAgentCardResolver } from '@a2a-js/sdk/client'
import type { Egress } from '../../../infra/egress/egress-port.ts'
import { openDeadline } from '../../../state/deadline.ts'
import { toErrorMessage } from '../../../state/errors.ts'
import { createFieldsError } from '../../../state/resource-schema.ts'
import { createEgressFetch } from './egress-fetch.ts'

const timeoutMs = 10_000
const maxCardBytes = 128 * 1024
const bindings = ['JSONRPC', 'HTTP+JSON']

/** Where a card is: the address itself where it names a file, else the usual path below it. */
const toCardAddress = (url: string): string =>
  new URL(url).pathname.endsWith('.json')
    ? url
    : new URL('.well-known/agent-card.json', url.endsWith('/') ? url : `${url}/`).href

const refuse = (detail: string) => createFieldsError({ pointer: '/card_url', detail })

/**
 * The card of an agent, in the form of A2A 1.0, with those of its addresses that Mason can call: at the origin of the card, since the
 * credentials are for that. Throws `invalid_request` that names `card_url`.
 */
export const readAgentCard = async (
  egress: Egress,
  cardUrl: string,
  options: { allowPrivate: boolean; headers: Record<string, string>; redact: (text: string) => string },
): Promise<Record<string, unknown>> => {
  using deadline = openDeadline(timeoutMs, new AbortController().signal)
  const { fetchImpl } = createEgressFetch({ egress, ...options, signal: deadline.signal })
  const resolver = new DefaultAgentCardResolver({ fetchImpl, legacyCompat: { enabled: true } })
  let card: AgentCard
  try {
    card = await resolver.resolve(toCardAddress(cardUrl), '')
  } catch (error) {
    throw refuse(`has no card that can be read: ${toErrorMessage(error).slice(0, 300)}`)
  }
  const { origin } = new URL(cardUrl)
  const supportedInterfaces = (card.supportedInterfaces ?? []).filter(
    ({ url, protocolBinding }) =>
      bindings.includes(protocolBinding) && URL.canParse(url) && new URL(url).origin === origin,
  )
  if (supportedInterfaces.length === 0)
    throw refuse(
      `leads to a card without an address at ${origin} for JSON-RPC or HTTP, so the agent cannot be called`,
    )
  const json = AgentCard.toJSON({ ...card, supportedInterfaces, signatures: [] }) as Record<string, unknown>
  if (Buffer.byteLength(JSON.stringify(json)) > maxCardBytes)
    throw refuse(`leads to a card of more than ${maxCardBytes / 1024} KB`)
  return json
}
