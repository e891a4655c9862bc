import { toIssuer } from '../../infra/config/issuer.ts'
import { configRef, hintsRef, registryRef } from '../core.ref.ts'
import { defineRunService } from '../definitions.ts'
import { createExecutorWake } from './ports/work-hints.ts'
import { createRunPayments } from './runs/run-payments.ts'

export default defineRunService({
  name: 'payments',
  needs: { config: configRef, hints: hintsRef, registry: registryRef },
  open: ({ config, hints, registry }, run, sql) =>
    createRunPayments(sql, run, toIssuer(config), createExecutorWake(hints), registry),
})
