import { ofBusiness } from '../../accounts/businesses.ts'
import { queryOne } from '../../infra/database/database.ts'
import type { ResourceKind, ResourceRow } from '../../infra/resources/resource-store.ts'
import { businessQuery } from '../../routes/parameters.ts'
import { toMasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { createFieldsError, type FieldError } from '../../state/resource-schema.ts'
import { admittedRunSchema } from '../../state/run-view.ts'
import { type RunSubmission, runSubmissionRef } from '../core.ref.ts'
import { defineResource } from '../define-resource.ts'
import { findNextTime } from './planned-times.ts'
import {
  type ScheduleChange,
  type ScheduledRequest,
  type ScheduleInput,
  type ScheduleView,
  scheduleSchemas,
} from './schedule-schemas.ts'

type Row = ResourceRow & ScheduleView & { claims: number }
/** `status`: what it becomes; a new timing makes it active, unless it is paused. */
type Change = ScheduleChange & { status?: 'active' | 'paused' }
type Timing = Pick<ScheduleInput, 'cron' | 'at' | 'time_zone'>

/** The first planned time by the clock of the database, in ISO 8601. Throws `invalid_request` where there is none. */
const planFirst = async (sql: Sql, { cron, at, time_zone }: Timing): Promise<string> => {
  if ((cron === null) === (at === null))
    throw createFieldsError(
      { pointer: '/cron', detail: 'exactly one of cron and at must be set' },
      { pointer: '/at', detail: 'exactly one of cron and at must be set' },
    )
  const now = (await queryOne<{ now: Date }>(sql, 'SELECT clock_timestamp() AS now', []))?.now.getTime() ?? 0
  const next = cron === null ? Date.parse(at ?? '') : findNextTime({ cron, time_zone }, now)
  if (next === null) throw createFieldsError({ pointer: '/cron', detail: 'has no time in the future' })
  if (next <= now) throw createFieldsError({ pointer: '/at', detail: 'is in the past' })
  return new Date(next).toISOString()
}

/** Throws `invalid_request` for a request that could not be submitted now. */
const checkRequest = async (
  runs: RunSubmission,
  businessId: string,
  request: ScheduledRequest,
): Promise<void> => {
  try {
    await runs.check(businessId, request)
  } catch (error) {
    const { errors = [] } = (toMasonError(error).detail ?? {}) as { errors?: FieldError[] }
    if (errors.length === 0) throw error
    throw createFieldsError(...errors.map((one) => ({ ...one, pointer: `/request${one.pointer}` })))
  }
}

const toPlan = (next: string | null) => ({
  status: next === null ? 'ended' : 'active',
  next_at: next,
  try_at: next,
})

/** The columns of a schedule that is written. */
const toValues: NonNullable<ResourceKind<Row, ScheduleInput, Change, ScheduleView>['toValues']> = async (
  input,
  { before, change },
  sql,
) => {
  if (!before || !change) return toPlan(await planFirst(sql, input))
  const isTimed = ['cron', 'at', 'time_zone'].some((name) => name in change)
  const status = change.status ?? (before.status === 'paused' ? 'paused' : 'active')
  const isPlanned = status === 'active' && (isTimed || before.status === 'paused')
  // also of a paused one it is checked that the new timing has a future
  const planned = isTimed || isPlanned ? await planFirst(sql, input) : before.next_at
  return {
    ...toPlan(status === 'active' ? planned : null),
    ...(status === 'paused' && { status }),
    claims: before.claims + 1,
  }
}

/** Schedules: requests that are submitted at planned times. Each belongs to a business. */
export default defineResource({
  needs: { runs: runSubmissionRef },
  path: '/admin/v1/schedules',
  one: 'a schedule',
  many: 'schedules',
  query: businessQuery,
  filter: businessQuery,
  remedy: 'name the business with ?business_id=; GET /admin/v1/schedules lists its schedules',
  ...scheduleSchemas,
  summaries: {
    list: 'Lists the schedules of a business, the latest first',
    change: 'Changes a schedule; absent fields stay unchanged, null clears cron and at',
    remove: 'Deletes a schedule; its runs stay',
  },
  ...ofBusiness,
  defaults: { business_id: 'default' },
  asBusiness: true,
  prefix: 'sch',
  table: 'schedules',
  idColumn: 'schedule_id',
  readOnly: ['status', 'next_at', 'last_planned_at', 'last_run_id', 'last_error'],
  json: ['request'],
  columns: 't.claims',
  toValues,
  // its statements are none of the transaction, which the embedded database would wait for
  operations: (store, { runs }) => ({
    async create(scope, input) {
      await checkRequest(runs, input.business_id, input.request)
      return store.create(scope, input)
    },
    async change(scope, id, change) {
      const before = change.request && (await store.get(scope, id))
      if (change.request && before) await checkRequest(runs, before.business_id, change.request)
      return store.change(scope, id, change)
    },
  }),
  actions: (store, { runs }) => [
    {
      name: 'pause',
      summary: 'Pauses a schedule',
      response: scheduleSchemas.view,
      run: (scope, id) => store.change(scope, id, { status: 'paused' }),
    },
    {
      name: 'resume',
      summary: 'Resumes a schedule; what was planned meanwhile is not fired',
      response: scheduleSchemas.view,
      problems: ['invalid_request'],
      run: (scope, id) => store.change(scope, id, { status: 'active' }),
    },
    {
      name: 'run',
      summary: 'Submits the request of a schedule now, whatever is planned',
      response: admittedRunSchema,
      problems: ['invalid_request', 'too_many_requests', 'budget_exhausted', 'session_of_another_user'],
      async run(scope, id) {
        const schedule = await store.get(scope, id)
        if (!schedule) return null
        return (await runs.submit(schedule.business_id, schedule.request as ScheduledRequest)).run
      },
    },
  ],
})
