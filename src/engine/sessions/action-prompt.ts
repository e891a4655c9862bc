import type { Graph } from '../../graph/build.ts'
import { createNoPromptError, rebuildPrompt } from '../../graph/rebuild-prompt.ts'
import { type Database, queryOne } from '../../infra/database/database.ts'
import { takePage } from '../../infra/database/pagination.ts'
import { readAnsweredCall, readOpenCall } from '../../state/calls.ts'
import { foldActions } from '../../state/fold.ts'
import type { ModelMessage } from '../../state/ports/model-messages.ts'
import type { SqlValues } from '../../state/ports/sql.ts'
import type { AdmittedRequest } from '../../state/run-request.ts'
import type { ActionPrompt } from '../../state/run-view.ts'
import type { Scenarios } from '../../state/scenario.ts'
import { readActionRows } from '../runs/run-queries.ts'
import { createServices, type ServiceFactories } from '../runs/run-services.ts'
import type { StoredAction } from './action-queries.ts'

/** What prompts are rebuilt with. */
export type PromptParts = {
  database: Database
  graph: Graph
  services: ServiceFactories
  scenarios: Scenarios
}

type PromptRow = Pick<StoredAction, 'run_id' | 'turn' | 'body' | 'created_at' | 'ms'> & {
  sha256: string | null
  user_id: string
  request: AdmittedRequest
}

/**
 * What an action sent to a model first, without the first `after` messages; null: no such action. Throws `no_prompt` where it
 * called no model, or cannot be rebuilt.
 */
export const readActionPrompt = async (
  { database, graph, services, scenarios }: PromptParts,
  { business_id, session_id }: { business_id: string; session_id: string },
  actionId: number,
  after: number,
): Promise<ActionPrompt | null> => {
  const found = await database.asBusiness(business_id, async (sql) => {
    const row = await queryOne<PromptRow>(
      sql,
      `SELECT a.run_id, a.turn, a.body, a.created_at, a.ms, encode(a.prompt_sha256, 'hex') AS sha256, q.user_id, q.request
       FROM actions a JOIN run_requests q ON q.tenant = a.tenant AND q.run_id = a.run_id
       WHERE a.tenant = $1 AND a.session_id = $2 AND a.seq = $3`,
      [business_id, session_id, actionId],
    )
    return (
      row && {
        row,
        before: await readActionRows(sql, business_id, session_id, row.turn, { to: actionId - 1 }),
      }
    )
  })
  if (!found) return null
  const { run_id, turn, body, created_at, ms, sha256, user_id, request } = found.row
  if (sha256 === null && body.usage.total_tokens === 0)
    throw createNoPromptError(`action ${actionId} of "${body.node}" called no model`)
  const claimed = {
    tenant: business_id,
    run_id,
    session_id,
    business_id,
    user_id,
    turn,
    request,
    state: foldActions(found.before),
    next_seq: actionId,
    worked_ms: 0,
    epoch: 0,
    stalls: 0,
    waited_ms: null,
    profile: null,
    questions: null,
    cancel_requested: false,
    cancel_reason: null,
  }
  const reader = {
    query: <Row>(text: string, values?: SqlValues) =>
      database.asBusiness(business_id, (sql) => sql.query<Row>(text, values)),
  }
  const action = { id: actionId, ...body }
  const rebuilt = await rebuildPrompt(graph, {
    claimed,
    node: body.node,
    scenarios,
    call: readAnsweredCall(action)?.index ?? readOpenCall(action),
    at: new Date(created_at.getTime() - (ms ?? 0)),
    // which tools there are is no matter of one business; what they found is
    services: { ...createServices(services, claimed, database), blobs: services.blobs(claimed, reader) },
  })
  const isSame = rebuilt.sha256 === sha256
  if (!isSame && rebuilt.lost.length > 0)
    throw createNoPromptError(`what action ${actionId} sent is gone: ${rebuilt.lost.join(', ')}`)
  const { messages, model, role } = rebuilt
  const page = takePage(messages.slice(after).map(toPromptMessage))
  return {
    action: actionId,
    run_id,
    node: body.node,
    role,
    model,
    origin: isSame ? 'as_sent' : sha256 === null ? 'rebuilt' : 'rebuilt_differs',
    sha256,
    rebuilt_sha256: rebuilt.sha256,
    messages: page,
    total: messages.length,
    has_more: after + page.length < messages.length,
  }
}

type PromptMessage = ActionPrompt['messages'][number]

const toPromptMessage = (message: ModelMessage): PromptMessage => {
  if (message.role === 'user') {
    const { images, ...text } = message
    const shown = images?.map(({ mime_type, data }) => ({
      mime_type,
      bytes: Buffer.byteLength(data, 'base64'),
    }))
    return { ...text, ...(shown && { images: shown }) }
  }
  if (message.role !== 'assistant') return message
  const { tool_calls, ...text } = message
  return { ...text, ...(tool_calls && { tool_calls: [...tool_calls] }) }
}
