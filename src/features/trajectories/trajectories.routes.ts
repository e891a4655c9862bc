import { z } from 'zod'
import { businessQuery, runParams } from '../../routes/parameters.ts'
import { throwNoSuchRun } from '../../routes/problems.ts'
import { createDocs } from '../../routes/route.ts'
import { businessRunsRef, databaseRef, graphRef } from '../core.ref.ts'
import { defineRoutes } from '../definitions.ts'
import { renderAtif } from './atif.ts'
import { renderOpenAiExample } from './openai.ts'
import { readTrajectorySource } from './read-source.ts'
import { readTrajectory } from './read-trajectory.ts'

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
