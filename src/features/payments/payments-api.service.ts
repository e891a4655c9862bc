import { clockRef, databaseRef, hintsRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { paymentsRef } from './payments.ref.ts'
import { createPaymentsApi } from './payments-api.ts'
import { createExecutorWake } from './ports/work-hints.ts'

export default defineService({
  provides: paymentsRef,
  needs: { database: databaseRef, clock: clockRef, hints: hintsRef },
  start: ({ database, clock, hints }) => createPaymentsApi(database, clock, createExecutorWake(hints)),
})
