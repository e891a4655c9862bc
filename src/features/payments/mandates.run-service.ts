import { toIssuer } from '../../infra/config/issuer.ts'
import { configRef, hintsRef, registryRef } from '../core.ref.ts'
import { defineRunService } from '../definitions.ts'
import { createExecutorWake } from './ports/work-hints.ts'
import { createRunMandates } from './runs/run-mandates.ts'

export default defineRunService({
  name: 'mandates',
  needs: { config: configRef, hints: hintsRef, registry: registryRef },
  open: ({ config, hints, registry }, run, sql) =>
    createRunMandates(sql, run, toIssuer(config), createExecutorWake(hints), registry),
})
