import {
  cardSigningRef,
  clockRef,
  configRef,
  egressRef,
  executorDatabaseRef,
  executorRef,
  hintsRef,
  logRef,
  paymentAgentsRef,
  queuesRef,
  scrubberRef,
} from '../core.ref.ts'
import { defineService, optional } from '../definitions.ts'

/** The executor within a process of something else: only where there is no database server. */
export default defineService({
  provides: executorRef,
  needs: {
    config: configRef,
    database: optional(executorDatabaseRef),
    egress: egressRef,
    queues: queuesRef,
    hints: hintsRef,
    clock: clockRef,
    log: logRef,
    scrubber: scrubberRef,
    agents: optional(paymentAgentsRef),
    signNextCard: optional(cardSigningRef),
  },
  start:
    ({ config, ...parts }) =>
    async () =>
      (await import('./executor/start-payments.ts')).startEmbeddedPayments(config, parts),
})
