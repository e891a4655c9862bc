import { newWorkerId } from '../../infra/lib/ids.ts'
import { clockRef, configRef, jobAdmissionsRef, logRef, queuesRef, workerDatabaseRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { intakeRef } from './intake.ref.ts'
import { createIntake } from './intake-batches.ts'
import { createIntakeLeader } from './intake-leader.ts'

export default defineService({
  provides: intakeRef,
  needs: {
    database: workerDatabaseRef,
    clock: clockRef,
    log: logRef,
    config: configRef,
    queues: queuesRef,
    of: jobAdmissionsRef,
  },
  start({ config: { queueSecrets }, queues: { driver }, of, ...parts }) {
    const jobs = createIntake({ ...parts, queueSecrets, of })
    const openQueue = async (mayTake: () => boolean) => {
      if (!driver) return null
      const { openIntakeQueue } = await import('./intake-queue.ts')
      return openIntakeQueue(driver, parts.log, mayTake)
    }
    return {
      jobs,
      leader: createIntakeLeader({ ...parts, intake: jobs, openQueue, workerId: newWorkerId() }),
    }
  },
})
