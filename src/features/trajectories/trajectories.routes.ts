import { z } from 'zod'
import { businessQuery, runParams } from '../../routes/parameters.ts'
import { throwNoSuchRun } from '../../routes/problems.ts'
import { createDocs } from '../../routes/route.ts'
import { businessRunsRef, graphRef } from '../core.ref.ts'
import { defineRoutes } from '../definitions.ts'
import { readTrajectory } from './read-trajectory.ts'

const describe = createDocs('runs')

const trajectoryQuery = businessQuery.extend({
  format: z.enum(['xml']).describe('`xml`: the language of the dialogue').default('xml'),
})

/** GET /v1/runs/{id}/trajectory */
export default defineRoutes({
  needs: { runsOf: businessRunsRef, graph: graphRef },
  add(app, { runsOf, graph }, { callerOf }) {
    app.get('/v1/runs/:id/trajectory', {
      schema: { params: runParams, querystring: trajectoryQuery },
      config: describe(
        'read',
        'getRunTrajectory',
        "The run's turn as text: thoughts, calls, results, answer",
        {
          description: 'In the language of the dialogue, as far as the run has come; no newline ends it.',
          responses: {
            200: {
              description: 'The trajectory',
              type: 'text/plain',
              headers: {
                'x-mason-trajectory':
                  '`written` by the model in this language, `rendered` from its native calls, or `mixed`: both in turn',
              },
            },
          },
        },
      ),
      handler: async (request, reply) => {
        const { id } = request.params
        const runs = runsOf(callerOf(request).business_id)
        const { text, origin } = (await readTrajectory(runs, graph(), id)) ?? throwNoSuchRun(id)
        return reply
          .header('x-mason-trajectory', origin)
          .header('x-content-type-options', 'nosniff')
          .type('text/plain; charset=utf-8')
          .send(text)
      },
    })
  },
})
