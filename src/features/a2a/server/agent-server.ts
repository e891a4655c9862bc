import { toAgentCard, toCardJson, toPayload } from './card.ts'
import { readExtensions } from './extensions.ts'
import { handleRest, toBodyError } from './rest.ts'
import { handleRpc, readVersion } from './rpc.ts'

/** Everything of A2A that a server needs, so that it is loaded by the first request of another agent and not before. */
export const agentServer = {
  toAgentCard,
  toCardJson,
  toPayload,
  readExtensions,
  readVersion,
  handleRest,
  toBodyError,
  handleRpc,
}
