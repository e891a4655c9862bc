import { configRef, inProcessModelRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { answerHere, offlineEntry } from './offline-provider.ts'

export default defineService({
  provides: inProcessModelRef,
  needs: { config: configRef },
  start: ({ config }) => ({ entry: { ...offlineEntry, dialect: config.offlineDialect }, send: answerHere }),
})
