import type { z } from 'zod'
import type { GraphInfo } from '../../graph/definitions.ts'
import type { Database } from '../../infra/database/database.ts'
import { toMoney } from '../../infra/lib/money.ts'
import { noCurrency } from '../../models/metering/ledger-rows.ts'
import { toModelSchema } from '../../state/model-schema.ts'
import { listReplies, type TrajectorySource } from './turn-replies.ts'

const costSql = `SELECT currency, sum(cost_micro)::text AS micro FROM usage_ledger
  WHERE tenant = $1 AND run_id = $2 AND visit_id IS NOT NULL AND currency <> '${noCurrency}' GROUP BY currency ORDER BY currency`

/** What the exports of a run are made of beside its state: what its visits cost, and the tools that it could call or did. */
export const readTrajectorySource = async (
  database: Pick<Database, 'asBusiness'>,
  { tools, tool }: Pick<GraphInfo, 'tools' | 'tool'>,
  turn: Pick<TrajectorySource, 'run' | 'state'>,
): Promise<TrajectorySource> => {
  const { business_id, id } = turn.run
  const { rows } = await database.asBusiness(business_id, (sql) =>
    sql.query<{ currency: string; micro: string }>(costSql, [business_id, id]),
  )
  const offered = tools.filter(({ kinds }) => kinds.includes('call')).map(({ name }) => name)
  const called = listReplies(turn).flatMap(({ calls }) => calls.map(({ name }) => name))
  return {
    ...turn,
    tools: [...new Set([...offered, ...called])].map((name) => toDefinition(name, tool(name))),
    cost: rows.map(({ currency, micro }) => ({ currency, cost: toMoney(micro) })),
  }
}

/** A tool that this process does not have, and the planner's own, may be called with anything. */
const toDefinition = (name: string, tool: ReturnType<GraphInfo['tool']>) => ({
  type: 'function' as const,
  function: tool
    ? { name, description: tool.description, parameters: toModelSchema(tool.input as z.ZodType, 'input') }
    : { name, parameters: { type: 'object' } },
})
