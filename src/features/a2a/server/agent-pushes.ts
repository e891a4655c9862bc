import type { CheckWebhookAddress } from '../../../engine/runs/webhook-address.ts'
import { type Database, queryOne } from '../../../infra/database/database.ts'
import { sha256 } from '../../../infra/lib/ids.ts'
import { openSealedText, type SealedText, sealText } from '../../../infra/secrets/envelope.ts'
import type { MasterKeys } from '../../../infra/secrets/master-keys.ts'
import type { Scrubber } from '../../../infra/secrets/scrubber.ts'
import { MasonError } from '../../../state/errors.ts'
import type { PushedMessage, RenderPush } from '../../push-message.ts'

/** Where another agent wants to hear of its task. `scheme` and `credentials` are those of the header Authorization. */
export type AgentPush = {
  id: string
  url: string
  protocol: '1.0' | '0.3'
  token: string
  scheme: string
  credentials: string
}

/** What of it is shown: no secrets. */
type AgentPushView = Pick<AgentPush, 'id' | 'url'>

const maxPushes = 10

const toBinding = (business_id: string, row_id: string) =>
  ({ purpose: 'push', vendor_id: '', row_id, business_id }) as const

/** The addresses that other agents want to hear at, of the tasks of all businesses. */
export const createAgentPushes = (
  database: Database,
  keys: MasterKeys,
  checkAddress: CheckWebhookAddress,
) => ({
  /** Throws `invalid_request` for an address that the business must not call. */
  check: (businessId: string, url: string): Promise<void> => checkAddress(businessId, url, 'url'),
  /** Adds or replaces one, and sends what became of the task before. Throws `invalid_request`. */
  async put(businessId: string, runId: string, push: AgentPush): Promise<void> {
    await this.check(businessId, push.url)
    const pushId = `psh_${sha256(JSON.stringify([businessId, runId, push.id])).slice(0, 40)}`
    const { id, url, protocol, ...secrets } = push
    const sealed = sealText(JSON.stringify(secrets), toBinding(businessId, pushId), keys)
    await database.asBusiness(businessId, async (sql) => {
      // the lock is that of every change of status: either it sees this row, or this sees its status
      await sql.query('SELECT FROM runs WHERE tenant = $1 AND run_id = $2 FOR NO KEY UPDATE', [
        businessId,
        runId,
      ])
      const { rows } = await sql.query(
        `INSERT INTO agent_pushes (tenant, push_id, run_id, config_id, url, protocol, master_key, wrapped_key, sealed_secrets)
         SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9
         WHERE (SELECT count(*) FROM agent_pushes WHERE tenant = $1 AND run_id = $3 AND push_id <> $2) < ${maxPushes}
         ON CONFLICT (push_id) DO UPDATE SET url = EXCLUDED.url, protocol = EXCLUDED.protocol, master_key = EXCLUDED.master_key,
           wrapped_key = EXCLUDED.wrapped_key, sealed_secrets = EXCLUDED.sealed_secrets RETURNING push_id`,
        [businessId, pushId, runId, id, url, protocol, sealed.master_key, sealed.wrapped_key, sealed.sealed],
      )
      if (rows.length === 0)
        throw new MasonError(
          'invalid_request',
          `the task has ${maxPushes} push configurations; delete one first`,
        )
      await sql.query(
        `SELECT add_agent_pushes(tenant, run_id, 'run.' || status, CASE WHEN status = 'input_required' THEN
           (SELECT i.request_id FROM input_requests i WHERE i.tenant = r.tenant AND i.run_id = r.run_id AND i.answered_at IS NULL
            ORDER BY i.created_at DESC LIMIT 1) END, $3)
         FROM runs r WHERE tenant = $1 AND run_id = $2 AND status IN ('completed', 'failed', 'cancelled', 'input_required')`,
        [businessId, runId, pushId],
      )
    })
  },
  list: async (businessId: string, runId: string): Promise<AgentPushView[]> =>
    database.asBusiness(businessId, async (sql) => {
      const { rows } = await sql.query<AgentPushView>(
        'SELECT config_id AS id, url FROM agent_pushes WHERE tenant = $1 AND run_id = $2 ORDER BY created_at, config_id',
        [businessId, runId],
      )
      return rows
    }),
  /** What is not sent yet is not sent any more. */
  remove: async (businessId: string, runId: string, id: string): Promise<void> => {
    await database.asBusiness(businessId, (sql) =>
      sql.query('DELETE FROM agent_pushes WHERE tenant = $1 AND run_id = $2 AND config_id = $3', [
        businessId,
        runId,
        id,
      ]),
    )
  },
})

/** See `createAgentPushes`. */
export type AgentPushes = ReturnType<typeof createAgentPushes>

const states: Record<string, readonly [current: string, legacy: string]> = {
  'run.completed': ['TASK_STATE_COMPLETED', 'completed'],
  'run.failed': ['TASK_STATE_FAILED', 'failed'],
  'run.cancelled': ['TASK_STATE_CANCELED', 'canceled'],
  'run.input_required': ['TASK_STATE_INPUT_REQUIRED', 'input-required'],
  'run.consent_required': ['TASK_STATE_AUTH_REQUIRED', 'auth-required'],
}

/** The row of a push, sealed. */
type PushRow = SealedText & { push_id: string; protocol: '1.0' | '0.3' }

/** The body of a push: an event of 1.0, the task of 0.3. Its receiver reads the answer with the task. */
const toBody = (claim: PushedMessage, { protocol }: PushRow): string => {
  const { type, run_id: id, result, question } = claim
  const contextId = String(claim.metadata?.['a2a.context_id'] ?? '')
  const [current, legacy] = states[type] ?? []
  const text = question ?? result?.error?.message
  const ids = { messageId: claim.webhook_id, taskId: id, contextId }
  const timestamp = claim.created_at
  if (protocol === '1.0') {
    const message = { ...ids, role: 'ROLE_AGENT', parts: [{ text }] }
    const status = { state: current, timestamp, ...(text && { message }) }
    return JSON.stringify({ statusUpdate: { taskId: id, contextId, status } })
  }
  const message = { kind: 'message', ...ids, role: 'agent', parts: [{ kind: 'text', text }] }
  const status = { state: legacy, timestamp, ...(text && { message }) }
  return JSON.stringify({ kind: 'task', id, contextId, status })
}

type RendererParts = { database: Database; masterKeys: MasterKeys; scrubber: Pick<Scrubber, 'add'> }

/** Renders the messages of pushes by their rows, whose secrets it opens. */
export const createPushRenderer = ({ database, masterKeys, scrubber }: RendererParts): RenderPush => {
  const readRow = async (pushId: string): Promise<PushRow> => {
    const row = await queryOne<PushRow>(
      database,
      'SELECT push_id, protocol, master_key, wrapped_key, sealed_secrets AS sealed FROM agent_pushes WHERE push_id = $1',
      [pushId],
    )
    if (row) return row
    throw new MasonError('not_found', 'the push configuration was deleted')
  }
  return async (message) => {
    const row = await readRow(message.push_id)
    const text = openSealedText(row, toBinding(message.tenant, row.push_id), masterKeys).reveal()
    const { token, scheme, credentials } = JSON.parse(text) as Pick<
      AgentPush,
      'token' | 'scheme' | 'credentials'
    >
    for (const secret of [token, credentials]) if (secret) scrubber.add(secret)
    const headers = {
      ...(row.protocol === '1.0' && { 'content-type': 'application/a2a+json' }),
      ...(token && { 'x-a2a-notification-token': token }),
      ...(scheme && { authorization: `${scheme} ${credentials}` }),
    }
    return { body: toBody(message, row), headers }
  }
}
