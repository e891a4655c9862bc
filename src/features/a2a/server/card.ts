import { AgentCard, canonicalizeAgentCard } from '@a2a-js/sdk'
import { duplicateInterfacesForLegacy } from '@a2a-js/sdk/compat/v0_3'
import { LegacyRestTransportHandler } from '@a2a-js/sdk/compat/v0_3/server'
import { ServerCallContext } from '@a2a-js/sdk/server'
import { toCanonicalJson } from '../../canonical-json.ts'
import { currentAp2Uris } from '../client/ap2.ts'
import type { AgentCardInput } from './agent-cards.ts'

/** The card of a business as the protocol has it, with both bindings in both versions at one address. */
export const toAgentCard = (card: AgentCardInput, businessId: string, origin: string): AgentCard => {
  const url = `${origin}/a2a/agents/${encodeURIComponent(businessId)}`
  const bindings = ['JSONRPC', 'HTTP+JSON']
  const interfaces = bindings.map((protocolBinding) => ({
    url,
    protocolBinding,
    protocolVersion: '1.0',
    tenant: '',
  }))
  const extensions = currentAp2Uris.map((uri, at) => ({
    uri,
    description: 'Payments by the Agent Payments Protocol (AP2)',
    required: at === 0 && card.roles.includes('merchant'),
    params: { roles: card.roles },
  }))
  return {
    name: card.name,
    description: card.description,
    version: card.version,
    supportedInterfaces: duplicateInterfacesForLegacy(interfaces, bindings),
    provider: card.provider,
    documentationUrl: card.documentation_url,
    iconUrl: undefined,
    capabilities: {
      streaming: true,
      pushNotifications: true,
      extendedAgentCard: false,
      extensions: card.roles.length > 0 ? extensions : [],
    },
    securitySchemes: {
      bearer: {
        scheme: {
          $case: 'httpAuthSecurityScheme',
          value: { scheme: 'bearer', bearerFormat: '', description: 'A token of the business' },
        },
      },
    },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: ['text/plain', 'application/json'],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills: card.skills.map(({ input_modes = [], output_modes = [], examples = [], ...skill }) => ({
      ...skill,
      examples,
      inputModes: input_modes,
      outputModes: output_modes,
      securityRequirements: [],
    })),
    signatures: [],
  }
}

/** The JSON of a card by version. That of 0.3 also names the interfaces of 1.0, as clients of 1.0 may ask without a version. */
const toJsons = async (card: AgentCard): Promise<Record<'1.0' | '0.3', Record<string, unknown>>> => {
  const core = AgentCard.toJSON(card) as Record<string, unknown>
  const getAuthenticatedExtendedAgentCard = async () => card
  const transport = new LegacyRestTransportHandler({ getAuthenticatedExtendedAgentCard } as never)
  const legacy = await transport.getAuthenticatedExtendedAgentCard(new ServerCallContext())
  return { '1.0': core, '0.3': { ...legacy, supportedInterfaces: core.supportedInterfaces } }
}

/** What is signed of a card, by version: canonical JSON (RFC 8785) without its signatures, in 1.0 also without empty members. */
export const toPayload = async (card: AgentCard): Promise<Record<string, string>> => {
  const { '0.3': legacy } = await toJsons(card)
  return { '1.0': canonicalizeAgentCard(card), '0.3': toCanonicalJson(JSON.parse(JSON.stringify(legacy))) }
}

/** The card on the wire, in a version. */
export const toCardJson = async (
  card: AgentCard,
  version: string,
  signatures: Record<string, { protected: string; signature: string }>,
): Promise<unknown> => {
  const name = version === '0.3' ? '0.3' : '1.0'
  const signature = signatures[name]
  return { ...(await toJsons(card))[name], ...(signature && { signatures: [signature] }) }
}
