import { z } from 'zod'
import { readBusinessSecrets } from '../../../accounts/business-secrets.ts'
import type { Egress } from '../../../infra/egress/egress-port.ts'
import { parseJsonOrText } from '../../../infra/lib/json-text.ts'
import type { MasterKeys } from '../../../infra/secrets/master-keys.ts'
import type { Scrubber } from '../../../infra/secrets/scrubber.ts'
import { MasonError } from '../../../state/errors.ts'
import {
  type AgentMessage,
  type AgentReply,
  type Agents,
  agentStates,
  type RemoteAgent,
} from '../../../state/ports/agents.ts'
import type { Sql } from '../../../state/ports/sql.ts'
import type { SealForExecutor } from '../../core.ref.ts'
import { keepWithView, type Viewed } from '../../keep-with-view.ts'
import type { AgentTarget } from './agent-client.ts'
import { fillHeaders } from './egress-fetch.ts'
import { toHeadersPurpose } from './payment-agents.ts'
import { type CardReader, createAgentRows, type HeaderSealer, toRemoteAgent } from './remote-agents.ts'

/** What opens the secrets of a business and redacts them. */
type SecretOptions = { masterKeys: MasterKeys; scrubber: Pick<Scrubber, 'add' | 'text'> }

/** What calls of other agents need beside the business. */
type AgentOptions = SecretOptions & {
  egress: Egress
  /** The origin at which agents reach this server, where there is one. */
  publicUrl: string | null
  registry: Viewed
}

/** The SDK takes a quarter of a second to load: nothing of it is before the first call. */
const load = () => import('./agent-client.ts')

const pollMs = 2000
/** Of an agent that was asked to push: a push may be lost. */
const pollOfPushedMs = 60_000
/** An agent may work on a task for this long. */
const taskTimeoutMs = 24 * 60 * 60_000

const replySchema = z.object({
  agent: z.string(),
  task_id: z.string().nullable(),
  context_id: z.string().nullable(),
  state: z.enum(agentStates),
  texts: z.array(z.string()),
  data: z.array(z.record(z.string(), z.json())),
  push_id: z.string().nullable().default(null),
})

const isOpen = ({ state }: AgentReply): boolean => state === 'submitted' || state === 'working'

const fillSecretHeaders = async (
  { masterKeys, scrubber }: SecretOptions,
  sql: Sql,
  businessId: string,
  headers: Record<string, string>,
): Promise<Record<string, string>> => {
  if (Object.keys(headers).length === 0) return {}
  const secrets = await readBusinessSecrets(sql, masterKeys, businessId)
  for (const secret of Object.values(secrets)) scrubber.add(secret)
  return fillHeaders(headers, secrets)
}

/** Reads cards for admins, with the headers of the agent. */
export const createCardReader =
  (options: SecretOptions, egress: Egress, sql: Sql): CardReader =>
  async (businessId, { card_url, headers, allow_private }) => {
    const { readAgentCard } = await import('./remote-cards.ts')
    const filled = await fillSecretHeaders(options, sql, businessId, headers)
    return readAgentCard(egress, card_url, {
      allowPrivate: allow_private,
      headers: filled,
      redact: options.scrubber.text,
    })
  }

/** Seals headers for the executor of payments by `seal`, which says null where no executor has started. */
export const createHeaderSealer =
  (options: SecretOptions, sql: Sql, seal: SealForExecutor): HeaderSealer =>
  async ({ id, business_id, card_url, headers }) => {
    if (Object.keys(headers).length === 0) return null
    const filled = await fillSecretHeaders(options, sql, business_id, headers)
    return seal(JSON.stringify(filled), toHeadersPurpose(id, card_url))
  }

/** The id that a message has whenever it is sent. */
const toMessageId = (key: string): string => `mason-${key.slice(0, 40)}`

const toReply = (value: unknown): AgentReply => {
  const parsed = replySchema.safeParse(value)
  if (parsed.success) return parsed.data
  return {
    agent: '',
    task_id: null,
    context_id: null,
    state: 'completed',
    data: [],
    push_id: null,
    texts: ['An operator confirmed that the agent got the message. Its answer is not known.'],
  }
}

/** The agents of a business, as runs see them. */
const keepAgents = keepWithView<RemoteAgent[]>()

/** How one run calls agents. The list is kept; rows and secrets are read for each call, so that a change holds at once: see `createAgentRows`. */
export const createRunAgents = (options: AgentOptions, sql: Sql, businessId: string): Agents => {
  const rows = createAgentRows(sql)
  const openTarget = async (name: string): Promise<AgentTarget> => {
    const row = await rows.find(businessId, name)
    if (!row)
      throw new MasonError('not_found', `there is no agent "${name.slice(0, 100)}" for this business`, {
        remedy: 'choose one that is listed; an admin adds them: POST /admin/v1/businesses/{id}/agents',
      })
    const headers = await fillSecretHeaders(options, sql, businessId, row.headers)
    const pushUrl = options.publicUrl && `${options.publicUrl}/a2a/push`
    return { row, headers, egress: options.egress, redact: options.scrubber.text, pushUrl }
  }
  return {
    async list(role) {
      const all = await keepAgents(options.registry, businessId, async () =>
        (await rows.list(businessId)).map(toRemoteAgent),
      )
      return all.filter(({ roles }) => role === undefined || roles.includes(role))
    },
    async send(message) {
      // the first send follows at once
      let known: AgentTarget | null = await openTarget(message.agent)
      return {
        class: 'queryable',
        request: JSON.stringify(message),
        storesResponse: true,
        async send(stored, key, checkLease, signal) {
          const original = JSON.parse(stored) as AgentMessage
          const read = original.agent === message.agent ? known : null
          known = null
          const [{ sendMessage }, target] = await Promise.all([load(), read ?? openTarget(original.agent)])
          return JSON.stringify(await sendMessage(target, original, toMessageId(key), checkLease, signal))
        },
        async lookup(key, signal) {
          const [{ findMessage }, target] = await Promise.all([load(), openTarget(message.agent)])
          const found = await findMessage(target, message, toMessageId(key), signal)
          return found && JSON.stringify(found)
        },
      }
    },
    wait: ({ agent, task_id, push_id }) => ({
      kind: 'job',
      refId: push_id ?? `${agent} ${task_id ?? ''}`.slice(0, 500),
      expiresInMs: taskTimeoutMs,
      async poll(signal) {
        const [{ readTask }, target] = await Promise.all([load(), openTarget(agent)])
        const reply = await readTask(target, task_id ?? '', signal)
        return isOpen(reply)
          ? { againInMs: push_id === null ? pollMs : pollOfPushedMs }
          : { outcome: { status: reply.state, reply } }
      },
    }),
    read: (answer) => toReply(typeof answer === 'string' ? parseJsonOrText(answer) : answer),
  }
}
