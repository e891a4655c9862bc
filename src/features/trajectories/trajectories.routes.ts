import { z } from 'zod'
import type { GraphInfo } from '../../graph/definitions.ts'
import type { Database } from '../../infra/database/database.ts'
import { toMoney } from '../../infra/lib/money.ts'
import { noCurrency } from '../../models/metering/ledger-rows.ts'
import { businessQuery, runParams } from '../../routes/parameters.ts'
import { throwNoSuchRun } from '../../routes/problems.ts'
import { createDocs } from '../../routes/route.ts'
import { toModelSchema } from '../../state/model-schema.ts'
import { businessRunsRef, databaseRef, graphRef } from '../core.ref.ts'
import { defineRoutes } from '../definitions.ts'
import { renderAtif } from './atif.ts'
import { renderOpenAiExample } from './openai.ts'
import { readTrajectory } from './read-trajectory.ts'
import { listReplies, type TrajectorySource } from './turn-replies.ts'

const costSql = `SELECT currency, sum(cost_micro)::text AS micro FROM usage_ledger
  WHERE tenant = $1 AND run_id = $2 AND visit_id IS NOT NULL AND currency <> '${noCurrency}' GROUP BY currency ORDER BY currency`

/** What the exports of a run are made of beside its state: what its visits cost, and the tools that it could call or did. */
const readTrajectorySource = async (
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

const describe = createDocs('runs')

const trajectoryQuery = businessQuery.extend({
  format: z
    .enum(['xml', 'openai', 'atif'])
    .describe(
      '`xml`: the language of the dialogue; `openai`: a line for fine-tuning; `atif`: Agent Trajectory Interchange Format 1.7',
    )
    .default('xml'),
})

const exports = {
  openai: { render: renderOpenAiExample, type: 'application/jsonl' },
  atif: { render: renderAtif, type: 'application/json' },
} as const

/** GET /v1/runs/{id}/trajectory */
export default defineRoutes({
  needs: { runsOf: businessRunsRef, graph: graphRef, database: databaseRef },
  add(app, { runsOf, graph, database }, { callerOf }) {
    app.get('/v1/runs/:id/trajectory', {
      schema: { params: runParams, querystring: trajectoryQuery },
      config: describe('read', 'getRunTrajectory', "The run's turn: thoughts, calls, results, answer", {
        description:
          'As far as the run has come. In the language of the dialogue it is text that no newline ends; `openai` is `application/jsonl`, `atif` is `application/json`.',
        responses: {
          200: {
            description: 'The trajectory',
            type: '*/*',
            headers: {
              'x-mason-trajectory':
                '`written` by the model in this language, `rendered` from its native calls, or `mixed`: both in turn',
            },
          },
        },
      }),
      handler: async (request, reply) => {
        const { id } = request.params
        const runs = runsOf(callerOf(request).business_id)
        const found = (await readTrajectory(runs, graph(), id)) ?? throwNoSuchRun(id)
        const { format } = request.query
        reply.header('x-mason-trajectory', found.origin).header('x-content-type-options', 'nosniff')
        if (format === 'xml') return reply.type('text/plain; charset=utf-8').send(found.text)
        const { type, render } = exports[format]
        return reply.type(type).send(render(await readTrajectorySource(database, graph(), found)))
      },
    })
  },
})
