import { timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { type SignedJob, toJobMac } from '../../infra/queue/signed-jobs.ts'
import { parseExactJson } from '../../state/text/exact-json.ts'
import { countJsonValues, maxJsonValues } from '../../state/text/json-size.ts'

const signedJobSchema = z.strictObject({ payload: z.string(), signature: z.string() })

/** For so long a signed job may wait in the queue. Idempotency keys live longer, so a copy is never a second run. */
const maxAgeS = 24 * 60 * 60
const maxSkewS = 300

/**
 * The data of a job, signed by any of these secrets, or why it is refused. Without secrets nothing is checked, so that
 * producers can sign before workers ask for it.
 */
export const openSignedJob = (
  id: string,
  data: unknown,
  secrets: readonly string[],
  now: Date,
): { data: unknown } | { error: string } => {
  const signed = signedJobSchema.safeParse(data).data
  if (!signed)
    return secrets.length === 0
      ? { data }
      : {
          error:
            'the job is not signed, and this Mason takes signed jobs only: sign it with MASON_QUEUE_SECRET',
        }
  const error = secrets.length === 0 ? null : findSignatureError(id, signed, secrets, now)
  if (error !== null) return { error }
  if (countJsonValues(signed.payload) > maxJsonValues)
    return { error: `the payload of the signed job has more than ${maxJsonValues} values` }
  try {
    return { data: parseExactJson(signed.payload) }
  } catch {
    return { error: 'the payload of the signed job is not JSON' }
  }
}

/** Why a signed job is refused that none of these secrets signed, without a look into its payload. */
export const findSignatureError = (
  id: string,
  { payload, signature }: SignedJob,
  secrets: readonly string[],
  now: Date,
): string | null => {
  const [, time = '', mac] = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/.exec(signature) ?? []
  if (mac === undefined) return 'the signature is not "t=<seconds>,v1=<64 hex digits>"'
  const given = Buffer.from(mac, 'hex')
  if (!secrets.some((secret) => timingSafeEqual(toJobMac(secret, time, id, payload), given)))
    return 'the signature does not fit the id and the payload of this job: sign both with MASON_QUEUE_SECRET'
  const ageS = now.getTime() / 1000 - Number(time)
  if (ageS > maxAgeS) return 'the job was signed more than 24 hours ago: sign it again'
  return ageS < -maxSkewS ? 'the job was signed in the future: correct the clock of the producer' : null
}
