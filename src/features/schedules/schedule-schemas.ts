import { z } from 'zod'
import { labelSchema, toChangeSchema, toViewSchema } from '../../state/resource-schema.ts'
import { businessIdSchema, runRequestSchema } from '../../state/run-request.ts'
import { findCronError, isTimeZone } from './planned-times.ts'

/** Bodies and views of the admin API for schedules: docs/contract.md, section 7. */

const cronSchema = z.string().superRefine((cron, context) => {
  const message = findCronError(cron)
  if (message !== null) context.addIssue({ code: 'custom', message })
})

const timingSchema = z.strictObject({
  cron: cronSchema
    .nullable()
    .describe('Five fields: minute, hour, day of the month, month, day of the week; either this or `at`')
    .default(null),
  at: z.iso.datetime({ offset: true }).nullable().describe('Once, at this time').default(null),
  time_zone: z
    .string()
    .max(100)
    .refine(isTimeZone, 'is not a time zone of the IANA database, such as Europe/Berlin')
    .describe('The time zone of `cron`, a name of the IANA database')
    .default('UTC'),
  catch_up: z
    .enum(['none', 'last', 'all'])
    .describe('Which planned times are fired that have passed: none, the last one, or all (the last 100)')
    .default('last'),
})

/** What is submitted: a run without a business, which the schedule has. */
const requestSchema = runRequestSchema
  .omit({ business_id: true })
  .refine(({ files = [] }) => files.every(({ content_base64 }) => content_base64 === undefined), {
    path: ['files'],
    message: 'must not contain content_base64; upload the file and name it by file_id',
  })

const scheduleInputSchema = z.strictObject({
  business_id: businessIdSchema.describe('The business of its runs').default('default'),
  name: labelSchema.describe('A name for people'),
  ...timingSchema.shape,
  request: requestSchema.describe('What is submitted: a body of POST /v1/runs'),
})

const errorSchema = z.strictObject({
  code: z.string(),
  message: z.string(),
  planned_at: z.string(),
  at: z.string(),
})

/** A schedule as the admin API returns it. Times are ISO 8601 in UTC. */
const scheduleViewSchema = toViewSchema({
  business_id: z.string(),
  name: z.string(),
  cron: z.string().nullable(),
  at: z.string().nullable(),
  time_zone: z.string(),
  catch_up: z.enum(['none', 'last', 'all']),
  /** `ended`: no planned time is left. */
  status: z.enum(['active', 'paused', 'ended']),
  request: z.record(z.string(), z.json()),
  /** The planned time that is fired next. */
  next_at: z.string().nullable(),
  last_planned_at: z.string().nullable(),
  last_run_id: z.string().nullable(),
  /** Why the latest planned time has no run; null: it has one. */
  last_error: errorSchema.nullable(),
})

/** The bodies and the view of schedules. */
export const scheduleSchemas = {
  input: scheduleInputSchema.meta({
    examples: [
      {
        name: 'the report of the morning',
        cron: '0 8 * * 1-5',
        time_zone: 'Europe/Berlin',
        request: { prompt: 'Which orders of yesterday are open?', user_id: 'ann' },
      },
    ],
  }),
  /** An absent field stays; null clears `cron` and `at`. */
  change: toChangeSchema(scheduleInputSchema.omit({ business_id: true })).meta({
    examples: [{ cron: '30 7 * * *', catch_up: 'none' }],
  }),
  view: scheduleViewSchema,
}

/** See `scheduleInputSchema`. */
export type ScheduleInput = z.infer<typeof scheduleInputSchema>
/** The fields of a change. */
export type ScheduleChange = z.infer<typeof scheduleSchemas.change>
/** See `scheduleViewSchema`. */
export type ScheduleView = z.infer<typeof scheduleViewSchema>
/** What a schedule submits. */
export type ScheduledRequest = ScheduleInput['request']
/** Why a planned time has no run. */
export type ScheduleError = z.infer<typeof errorSchema>
