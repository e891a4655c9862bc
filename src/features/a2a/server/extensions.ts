import { type AgentCard, Extensions } from '@a2a-js/sdk'
import { ExtensionSupportRequiredError } from '@a2a-js/sdk/errors'
import { ap2Uris } from '../client/ap2.ts'

const toKey = (uri: string): string => (ap2Uris.includes(uri) ? 'ap2' : uri)

/** What a request asks for: peers send either header in either version. */
export const readExtensions = (headers: Record<string, unknown>): string[] => [
  ...new Set(
    ['a2a-extensions', 'x-a2a-extensions'].flatMap((name) =>
      Extensions.parseServiceParameter([headers[name]].flat().join(',')),
    ),
  ),
]

/** Whether an agent speaks AP2. */
export const hasAp2 = ({ capabilities }: AgentCard): boolean =>
  capabilities?.extensions.some(({ uri }) => toKey(uri) === 'ap2') === true

/** What of it this agent has, as the caller named it. */
export const listActivated = (card: AgentCard, requested: readonly string[]): string[] => {
  const known = new Set(card.capabilities?.extensions.map(({ uri }) => toKey(uri)))
  return requested.filter((uri) => known.has(toKey(uri)))
}

/** Throws where the card requires an extension that the request does not ask for, under any of its URIs. */
export const checkRequired = (card: AgentCard, requested: readonly string[]): void => {
  const asked = new Set(requested.map(toKey))
  const missing = card.capabilities?.extensions.find(
    ({ uri, required }) => required && !asked.has(toKey(uri)),
  )
  if (missing)
    throw new ExtensionSupportRequiredError(
      `this agent requires an extension: send the header A2A-Extensions: ${missing.uri}`,
    )
}
