import { toIssuer } from '../../infra/config/issuer.ts'
import { configRef, hintsRef } from '../core.ref.ts'
import { defineRunService } from '../definitions.ts'
import { createExecutorWake } from './ports/work-hints.ts'
import { createRunMandates } from './runs/run-mandates.ts'

export default defineRunService({
  name: 'mandates',
  needs: { config: configRef, hints: hintsRef },
  open: ({ config, hints }, run, sql) =>
    createRunMandates(sql, run, toIssuer(config), createExecutorWake(hints)),
})
