import { randomUUID } from 'node:crypto'
import { readEnvironment } from './infra/config.ts'
import { openQueues } from './infra/queue/queue.ts'
import { faultsOf } from './infra/runs/intake.ts'
import { silentLog } from './infra/silent-log.ts'
import { MasonError } from './state/errors.ts'
import { type RunRequest, runRequestSchema } from './state/run-request.ts'

/**
 * Puts one job straight into the public queue `mason-runs`; gives its id, which is the idempotency key: the same id
 * is admitted once. Checked here already: throws `invalid_request` with every fault, `queue_unavailable` within 3 s.
 * Opens and closes a connection; who submits many jobs may keep a BullMQ queue of his own and add jobs named `run`.
 */
export const submitRun = async (
  request: RunRequest,
  options: { id?: string; redisUrl?: string } = {},
): Promise<{ id: string }> => {
  const parsed = runRequestSchema.safeParse(request)
  if (!parsed.success)
    throw new MasonError('invalid_request', 'the job does not check', {
      detail: { errors: faultsOf(parsed.error) },
    })
  const url = options.redisUrl ?? readEnvironment().REDIS_URL
  if (!url)
    throw new MasonError('invalid_settings', 'there is no queue to submit to', {
      remedy: 'set REDIS_URL, or give redisUrl; without Redis use POST /v1/runs',
    })
  const id = options.id ?? randomUUID()
  const queues = await openQueues({ kind: 'redis', url, log: silentLog })
  try {
    await queues.submit(id, parsed.data, {
      ...(request.priority !== undefined && { priority: request.priority }),
    })
    return { id }
  } finally {
    await queues.close()
  }
}
