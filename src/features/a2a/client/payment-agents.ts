import { MasonError } from '../../../state/errors.ts'
import type { OpenPaymentAgents } from '../../core.ref.ts'
import type { AgentTarget } from './agent-client.ts'
import { createAgentRows } from './remote-agents.ts'

const load = () => import('./agent-client.ts')

/** What sealed headers are for: an agent at an origin. A row that is changed behind its back gets them nowhere else. */
export const toHeadersPurpose = (agentId: string, cardUrl: string): string =>
  `agent ${agentId} headers ${new URL(cardUrl).origin}`

/** The id of a message of the executor. */
const toMessageId = (key: string): string => `mason-${key.slice(0, 60)}`

/** Takes the headers out of a reply; not all that this process knows, since a code of a person may be an amount elsewhere. */
const createRedactor =
  (values: readonly string[]) =>
  (text: string): string =>
    values.reduce((rest, value) => (value === '' ? rest : rest.replaceAll(value, '[secret]')), text)

/** The agents of businesses, as the executor of payments calls them: by their rows, read for each call. */
export const createPaymentAgents: OpenPaymentAgents = ({ egress, unseal }, sql) => {
  const rows = createAgentRows(sql)
  const openTarget = async (businessId: string, name: string): Promise<AgentTarget> => {
    const row = await rows.find(businessId, name)
    if (!row) throw new MasonError('not_found', `there is no agent "${name}" for this business`)
    if (Object.keys(row.headers).length > 0 && row.sealed_headers === null)
      throw new MasonError('secret_unreadable', `the headers of the agent "${name}" are not sealed yet`, {
        remedy: 'PATCH the agent with {} while `mason payments` runs',
      })
    const sealed = row.sealed_headers
    const text = sealed === null ? '{}' : await unseal(sealed, toHeadersPurpose(row.id, row.card_url))
    const headers = JSON.parse(text) as Record<string, string>
    return { row, headers, egress, redact: createRedactor(Object.values(headers)), pushUrl: null }
  }
  const open = (businessId: string, name: string) => Promise.all([load(), openTarget(businessId, name)])
  return {
    async find(businessId, name) {
      const row = await rows.find(businessId, name)
      if (!row) return null
      const { origin } = new URL(row.card_url)
      return { roles: row.roles, issuer: row.issuer ?? origin, origin }
    },
    async send(businessId, message, key, beforeSend, signal) {
      const [{ sendMessage, isPlainRefusal }, target] = await open(businessId, message.agent)
      return sendMessage(target, message, toMessageId(key), beforeSend, signal, isPlainRefusal)
    },
    async lookup(businessId, message, key, signal) {
      const [{ findMessage, isProtocolError }, target] = await open(businessId, message.agent)
      return findMessage(target, message, toMessageId(key), signal).catch((error: unknown) => {
        if (!isProtocolError(error)) throw error
        throw new MasonError('effect_unknown', `${message.agent} cannot say what became of a message`, {
          cause: error,
        })
      })
    },
    async readTask(businessId, agent, taskId, signal) {
      const [{ readTask, isProtocolError }, target] = await open(businessId, agent)
      return readTask(target, taskId, signal).catch((error: unknown) => {
        if (!isProtocolError(error)) throw error
        throw new MasonError('effect_unknown', `${agent} no longer knows the task`, { cause: error })
      })
    },
  }
}
