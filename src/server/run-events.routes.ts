import { afterOf, eventsHeaders, eventsQuery, idParams } from './parameters.ts'
import type { App, RouteDoc, ServerContext } from './route.ts'
import { noSuchRun } from './runs.routes.ts'
import { noSuchSession } from './sessions.routes.ts'
import { streamEvents } from './sse.ts'

const description = `Server-sent events. The current snapshots come first, then every action after the one given,
then what happens live. Reconnect with \`Last-Event-ID: n\` and get action n+1 onward, none lost, none twice.

| event | data | id |
|---|---|---|
| \`action\` | the action as committed, with \`run_id\` and \`turn\` (schema ActionEvent) | its own |
| \`status\` | \`{run_id, turn, status}\` | of the latest action |
| \`todos\` | \`{run_id, turn, todos}\` (schema TodosEvent) | of the latest action |
| \`input_required\` | the input request, with \`run_id\` (schema InputRequest) | of the latest action |
| \`delta\` | \`{run_id, node, call, attempt, text}\` (schema Delta); best effort, a new attempt voids earlier ones | none |
| \`done\` | the run (schema Run) | none |

A comment line every 15 seconds keeps proxies open.`

const docOf = (id: string, summary: string): RouteDoc => ({
  id,
  tag: 'events',
  summary,
  description,
  role: 'read',
  answers: { 200: { description: 'The stream', type: 'text/event-stream' } },
  problems: ['not_found'],
})

/** What happens, as it happens. A stream never changes the run: leaving it only ends the stream. */
export const runEventsRoutes = (app: App, { open, keepAliveMs }: ServerContext): void => {
  const schema = { params: idParams, querystring: eventsQuery, headers: eventsHeaders }

  app.get('/v1/runs/:id/events', {
    exposeHeadRoute: false,
    schema,
    config: { doc: docOf('followRun', 'Follows a run until its `done`') },
    handler: async ({ business, params: { id }, query, headers }, reply) => {
      if (!(await business.exists({ run_id: id }))) throw noSuchRun(id)
      const after = afterOf(headers, query)
      await streamEvents(reply, (signal) => business.events({ run_id: id }, after, signal), open, keepAliveMs)
    },
  })

  app.get('/v1/sessions/:id/events', {
    exposeHeadRoute: false,
    schema,
    config: { doc: docOf('followSession', 'Follows a whole conversation over its runs') },
    handler: async ({ business, params: { id }, query, headers }, reply) => {
      if (!(await business.exists({ session_id: id }))) throw noSuchSession(id)
      const after = afterOf(headers, query)
      await streamEvents(
        reply,
        (signal) => business.events({ session_id: id }, after, signal),
        open,
        keepAliveMs,
      )
    },
  })
}
