import { ofBusiness } from '../../accounts/businesses.ts'
import type { AdmittedRun } from '../../engine/runs/admission.ts'
import { type Database, queryOne } from '../../infra/database/database.ts'
import { findNextTime } from '../../infra/lib/planned-times.ts'
import {
  createResourceStore,
  type ResourceRow,
  type ResourceScope,
} from '../../infra/resources/resource-store.ts'
import { toMasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { createFieldsError, type FieldError } from '../../state/resource-schema.ts'
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

/** What the schedules of a process need beside the database. */
export type ScheduleParts = {
  database: Database
  /** Throws `invalid_request` for a request that could not be submitted now. */
  checkRequest(businessId: string, request: ScheduledRequest): Promise<void>
  submit(businessId: string, request: ScheduledRequest): Promise<AdmittedRun>
}

/** The schedules of businesses, for admins; each is of one of them. */
export const createSchedules = ({ database, submit, ...parts }: ScheduleParts) => {
  const store = createResourceStore<Row, ScheduleInput, Change, ScheduleView>(
    { database },
    {
      ...ofBusiness,
      defaults: { business_id: 'default' },
      asBusiness: true,
      name: 'schedule',
      prefix: 'sch',
      table: 'schedules',
      idColumn: 'schedule_id',
      input: scheduleSchemas.input,
      shown: ['status', 'next_at', 'last_planned_at', 'last_run_id', 'last_error'],
      json: ['request'],
      columns: 't.claims',
      toValues: async (input, { before, change }, sql) => {
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
      },
    },
  )
  const checkRequest = async (businessId: string, request: ScheduledRequest): Promise<void> => {
    try {
      await parts.checkRequest(businessId, request)
    } catch (error) {
      const { errors = [] } = (toMasonError(error).detail ?? {}) as { errors?: FieldError[] }
      if (errors.length === 0) throw error
      throw createFieldsError(...errors.map((one) => ({ ...one, pointer: `/request${one.pointer}` })))
    }
  }

  return {
    ...store,
    // its statements are none of the transaction, which the embedded database would wait for
    async create(scope: ResourceScope, input: ScheduleInput): Promise<ScheduleView> {
      await checkRequest(input.business_id, input.request)
      return store.create(scope, input)
    },
    async change(scope: ResourceScope, id: string, change: ScheduleChange): Promise<ScheduleView | null> {
      const before = change.request && (await store.get(scope, id))
      if (change.request && before) await checkRequest(before.business_id, change.request)
      return store.change(scope, id, change)
    },
    pause: (scope: ResourceScope, id: string) => store.change(scope, id, { status: 'paused' }),
    /** What was planned while it was paused is not fired. Throws `invalid_request` where no planned time is left. */
    resume: (scope: ResourceScope, id: string) => store.change(scope, id, { status: 'active' }),
    /** Submits its request now, whatever is planned. Throws what submitting throws. Null: there is none of this id. */
    async run(scope: ResourceScope, id: string): Promise<AdmittedRun | null> {
      const schedule = await store.get(scope, id)
      return schedule && submit(schedule.business_id, schedule.request as ScheduledRequest)
    },
  }
}

const toPlan = (next: string | null) => ({
  status: next === null ? 'ended' : 'active',
  next_at: next,
  try_at: next,
})

/** See `createSchedules`. */
export type Schedules = ReturnType<typeof createSchedules>
