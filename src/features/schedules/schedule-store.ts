import { randomBytes } from 'node:crypto'
import { ensureBusiness } from '../../accounts/businesses.ts'
import type { AdmittedRun } from '../../engine/runs/admission.ts'
import { type Database, queryOne } from '../../infra/database/database.ts'
import { cutJson, isLongJson, readPage, truncatedColumn } from '../../infra/database/pagination.ts'
import { findNextTime } from '../../infra/lib/planned-times.ts'
import { toMasonError } from '../../state/errors.ts'
import type { Sql } from '../../state/ports/sql.ts'
import { createFieldsError, type FieldError } from '../../state/resource-schema.ts'
import type { Page } from '../../state/run-view.ts'
import type { ScheduleChange, ScheduledRequest, ScheduleInput, ScheduleView } from './schedule-schemas.ts'

type Times = 'at' | 'next_at' | 'last_planned_at'
type ScheduleRow = Omit<ScheduleView, Times | 'created_at' | 'updated_at'> &
  Record<Times, Date | null> &
  Record<'created_at' | 'updated_at', Date>
type Timing = Pick<ScheduleInput, 'cron' | 'at' | 'time_zone'>

const plainColumns = `schedule_id AS id, tenant AS business_id, name, cron, at, time_zone, catch_up, status, next_at, last_planned_at,
  last_run_id, last_error, created_at, updated_at`
const columns = `${plainColumns}, request`

const toView = (row: ScheduleRow): ScheduleView => ({
  ...row,
  at: row.at?.toISOString() ?? null,
  next_at: row.next_at?.toISOString() ?? null,
  last_planned_at: row.last_planned_at?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

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

/** The schedules of businesses, for admins; each acts for one of them. Null or false: there is none of this id. */
export const createSchedules = ({ database, submit, ...parts }: ScheduleParts) => {
  const checkRequest = async (businessId: string, request: ScheduledRequest): Promise<void> => {
    try {
      await parts.checkRequest(businessId, request)
    } catch (error) {
      const { errors = [] } = (toMasonError(error).detail ?? {}) as { errors?: FieldError[] }
      if (errors.length === 0) throw error
      throw createFieldsError(...errors.map((one) => ({ ...one, pointer: `/request${one.pointer}` })))
    }
  }
  const readOne = async (
    sql: Sql,
    businessId: string,
    id: string,
    lock = '',
  ): Promise<ScheduleView | null> => {
    const row = await queryOne<ScheduleRow>(
      sql,
      `SELECT ${columns} FROM schedules WHERE tenant = $1 AND schedule_id = $2 ${lock}`,
      [businessId, id],
    )
    return row && toView(row)
  }
  const get = (businessId: string, id: string): Promise<ScheduleView | null> =>
    database.asBusiness(businessId, (sql) => readOne(sql, businessId, id))

  /** `status`: what it becomes; a new timing makes it active, unless it is paused. */
  const change = (
    businessId: string,
    id: string,
    { status, ...fields }: ScheduleChange & { status?: 'active' | 'paused' },
  ): Promise<ScheduleView | null> =>
    database.asBusiness(businessId, async (sql) => {
      const before = await readOne(sql, businessId, id, 'FOR UPDATE')
      if (!before) return null
      const after = { ...before, ...fields } as ScheduleView
      if (fields.request) await checkRequest(businessId, fields.request)
      const isTimed = ['cron', 'at', 'time_zone'].some((name) => name in fields)
      const targetStatus = status ?? (before.status === 'paused' ? 'paused' : 'active')
      const isPlanned = targetStatus === 'active' && (isTimed || before.status === 'paused')
      // also of a paused one it is checked that the new timing has a future
      const planned = isTimed || isPlanned ? await planFirst(sql, after) : before.next_at
      const next = targetStatus === 'active' ? planned : null
      await sql.query(
        `UPDATE schedules SET name = $name, cron = $cron, at = $at, time_zone = $time_zone, catch_up = $catch_up,
           request = $request::json, claims = claims + 1, next_at = $next, try_at = $next, updated_at = clock_timestamp(),
           status = CASE WHEN $targetStatus::text = 'paused' THEN 'paused' WHEN $next::timestamptz IS NULL THEN 'ended' ELSE 'active' END
         WHERE tenant = $businessId AND schedule_id = $id`,
        {
          businessId,
          id,
          name: after.name,
          cron: after.cron,
          at: after.at,
          time_zone: after.time_zone,
          catch_up: after.catch_up,
          request: JSON.stringify(after.request),
          next,
          targetStatus,
        },
      )
      return readOne(sql, businessId, id)
    })

  return {
    get,
    change: (businessId: string, id: string, fields: ScheduleChange) => change(businessId, id, fields),
    pause: (businessId: string, id: string) => change(businessId, id, { status: 'paused' }),
    /** What was planned while it was paused is not fired. Throws `invalid_request` where no planned time is left. */
    resume: (businessId: string, id: string) => change(businessId, id, { status: 'active' }),
    async create({ business_id, ...input }: ScheduleInput): Promise<ScheduleView> {
      await ensureBusiness(database, business_id)
      await checkRequest(business_id, input.request)
      return database.asBusiness(business_id, async (sql) => {
        const next = await planFirst(sql, input)
        const row = await queryOne<ScheduleRow>(
          sql,
          `INSERT INTO schedules (tenant, schedule_id, name, cron, at, time_zone, catch_up, request, next_at, try_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8::json, $9, $9) RETURNING ${columns}`,
          [
            business_id,
            `sch_${randomBytes(16).toString('hex')}`,
            input.name,
            input.cron,
            input.at,
            input.time_zone,
            input.catch_up,
            JSON.stringify(input.request),
            next,
          ],
        )
        return toView(row as ScheduleRow)
      })
    },
    remove: (businessId: string, id: string): Promise<boolean> =>
      database.asBusiness(businessId, async (sql) => {
        const { rows } = await sql.query(
          'DELETE FROM schedules WHERE tenant = $1 AND schedule_id = $2 RETURNING schedule_id',
          [businessId, id],
        )
        return rows.length > 0
      }),
    /** Submits its request now, whatever is planned. Throws what submitting throws. */
    async run(businessId: string, id: string): Promise<AdmittedRun | null> {
      const schedule = await get(businessId, id)
      return schedule && submit(businessId, schedule.request as ScheduledRequest)
    },
    list: (businessId: string, page: { limit: number; cursor?: string }): Promise<Page<ScheduleView>> =>
      database.asBusiness(businessId, (sql) =>
        readPage<ScheduleRow, ScheduleView>(
          sql,
          {
            select: `${plainColumns}, ${cutJson('request')} AS request, ${truncatedColumn({ request: isLongJson('request') })}`,
            from: 'schedules',
            where: 'tenant = $1',
            values: [businessId],
            at: 'created_at',
            id: 'schedule_id',
          },
          page,
          toView,
        ),
      ),
  }
}

/** See `createSchedules`. */
export type Schedules = ReturnType<typeof createSchedules>
