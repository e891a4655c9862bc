import { businessQuery, runParams } from '../../routes/parameters.ts'
import { throwNoSuchRun } from '../../routes/problems.ts'
import { type App, createDocs } from '../../routes/route.ts'
import { runChangeSchema, runEventSchema } from '../../state/run-view.ts'
import { changesHeaders, eventsHeaders, eventsQuery, readPosition, sessionParams } from './parameters.ts'
import type { ServerContext } from './plumbing/server-context.ts'
import { sendEvents } from './plumbing/sse.ts'
import { throwNoSuchSession } from './sessions.routes.ts'

const description = `Server-sent events. The current snapshots come first, then every action after the requested position,
then live events. Reconnect with \`Last-Event-ID: n\` and get action n+1 onward, none lost, none twice.

The schema is that of one event (RunEvent). Each name of \`event\` has its \`data\`, sent as JSON; \`delta\` is best effort, and a
new attempt voids earlier ones. A comment line every 15 seconds keeps proxies open.`

const describe = createDocs('events')

/** Streams of events. A stream never changes the run: disconnecting only ends the stream. */
export const runEventsRoutes = (app: App, { open, keepAliveMs }: ServerContext): void => {
  const streamRoute = (
    path: string,
    params: typeof runParams,
    id: string,
    summary: string,
    toSource: (id: string) => { run_id: string } | { session_id: string },
    throwNoSuchSource: (id: string) => never,
  ) =>
    app.get(path, {
      exposeHeadRoute: false,
      schema: { params, querystring: eventsQuery, headers: eventsHeaders },
      config: describe('read', id, summary, {
        description,
        responses: { 200: { description: 'The stream', type: 'text/event-stream', schema: runEventSchema } },
      }),
      handler: async ({ business, params, query, headers }, reply) => {
        const source = toSource(params.id)
        if (!(await business.exists(source))) throwNoSuchSource(params.id)
        const after = readPosition(headers, query)
        await sendEvents(reply, (signal) => business.events(source, after, signal), open, keepAliveMs)
      },
    })
  streamRoute(
    '/v1/runs/:id/events',
    runParams,
    'followRun',
    'Follows a run until its `done`',
    (run_id) => ({ run_id }),
    throwNoSuchRun,
  )
  streamRoute(
    '/v1/sessions/:id/events',
    sessionParams,
    'followSession',
    'Follows a whole conversation over its runs',
    (session_id) => ({ session_id }),
    throwNoSuchSession,
  )
  app.get('/v1/events', {
    exposeHeadRoute: false,
    schema: { querystring: businessQuery, headers: changesHeaders },
    config: describe('read', 'followRuns', 'Follows the runs of a business, without content', {
      description:
        'Server-sent events: `ready`, then a `run` whenever a run has a new status. Reconnect with `Last-Event-ID`: each change comes at least once, for a day; where some may be lost, `reset` of `ready` is true.',
      responses: { 200: { description: 'The stream', type: 'text/event-stream', schema: runChangeSchema } },
    }),
    handler: ({ business, headers }, reply) => {
      const after = headers['last-event-id'] ?? null
      return sendEvents(reply, (signal) => business.changes(after, signal), open, keepAliveMs)
    },
  })
}
