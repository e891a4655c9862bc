import type { BulkClaim } from '../engine/runs/bulk-work.ts'
import type { BusinessApi } from './api.ts'

/** Does the action of a bulk job to one run. The key of a retry is that of job and run, so it can only exist once. */
export const actInBulk = (
  api: Pick<BusinessApi, 'cancel' | 'retry'>,
  { job_id, action, reason, token_id }: BulkClaim,
  runId: string,
): Promise<unknown> => {
  if (action === 'cancel') return api.cancel(runId, reason ?? undefined)
  const entry = {
    by: 'http' as const,
    route: '/v1/runs/bulk',
    beganAtMs: Date.now(),
    traceparent: undefined,
    token_id: token_id ?? undefined,
  }
  return api.retry(runId, `${job_id}:${runId}`, entry)
}
