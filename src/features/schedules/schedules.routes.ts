import { businessQuery } from '../../routes/parameters.ts'
import { actionRoute, resourceRoutes } from '../../routes/resource-routes.ts'
import { admittedRunSchema } from '../../state/run-view.ts'
import { defineRoutes } from '../definitions.ts'
import { scheduleSchemas } from './schedule-schemas.ts'
import { schedulesRef } from './schedules.ref.ts'

const schedules = {
  path: '/admin/v1/schedules',
  one: 'a schedule',
  many: 'schedules',
  ids: ['Schedule', 'Schedules'],
  query: businessQuery,
  remedy: 'name the business with ?business_id=; GET /admin/v1/schedules lists its schedules',
} as const

/** Schedules: requests that are submitted at planned times. Each belongs to a business. */
export default defineRoutes({
  needs: { store: schedulesRef },
  add(app, { store }, server) {
    resourceRoutes(app, {
      ...schedules,
      ...scheduleSchemas,
      filter: businessQuery,
      summaries: {
        list: 'Lists the schedules of a business, the latest first',
        change: 'Changes a schedule; absent fields stay unchanged, null clears cron and at',
        remove: 'Deletes a schedule; its runs stay',
      },
      store: () => store,
    })
    actionRoute(app, server, schedules, {
      name: 'pause',
      summary: 'Pauses a schedule',
      response: scheduleSchemas.view,
      run: store.pause,
    })
    actionRoute(app, server, schedules, {
      name: 'resume',
      summary: 'Resumes a schedule; what was planned meanwhile is not fired',
      response: scheduleSchemas.view,
      problems: ['invalid_request'],
      run: store.resume,
    })
    actionRoute(app, server, schedules, {
      name: 'run',
      summary: 'Submits the request of a schedule now, whatever is planned',
      response: admittedRunSchema,
      problems: ['invalid_request', 'too_many_requests', 'budget_exhausted', 'session_of_another_user'],
      run: store.run,
    })
  },
})
