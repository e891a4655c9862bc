import { z } from 'zod'
import { fieldErrorSchema } from '../../state/resource-schema.ts'

/** A job of the public queue that was refused. */
export const rejectedJobSchema = z.strictObject({
  id: z.string(),
  job_id: z.string(),
  /** Null where the job names no business that is known. */
  business_id: z.string().nullable(),
  errors: z.array(fieldErrorSchema),
  received_at: z.string(),
  /** The run that it became since. */
  run_id: z.string().nullable(),
})

/** A refused job with what was sent. */
export const rejectedJobDataSchema = rejectedJobSchema.extend({ data: z.json() })
