import { toAgentCard, toCardJson } from './card.ts'
import { readExtensions } from './extensions.ts'
import { handleRest } from './rest.ts'
import { handleRpc, readVersion } from './rpc.ts'

/** Everything of A2A that a server needs, so that it is loaded by the first request of another agent and not before. */
export const agentServer = { toAgentCard, toCardJson, readExtensions, readVersion, handleRest, handleRpc }
