// biome-ignore-all lint/performance/noBarrelFile: this file is the public face of mason-runtime/features

/** What a feature of another repository imports from `mason-runtime/features`; docs/features.md has the contract. */

export { ofBusiness } from '../accounts/businesses.ts'
export { businessQuery } from '../routes/parameters.ts'
export { createDocs, respondsWith } from '../routes/route.ts'
export type { FeatureServices } from '../state/ports/services.ts'
export { labelSchema, toChangeSchema, toViewSchema } from '../state/resource-schema.ts'
export { businessIdSchema } from '../state/run-request.ts'
export { defineCommand } from './command-definition.ts'
export {
  businessRunsRef,
  clockRef,
  configRef,
  databaseRef,
  egressRef,
  jobPollRef,
  logRef,
  masterKeysRef,
  modelGatewayRef,
  runSubmissionRef,
  scrubberRef,
  serverAddressRef,
  workerDatabaseRef,
} from './core.ref.ts'
export { defineResource } from './define-resource.ts'
export {
  defineDoctor,
  defineFeature,
  defineLoop,
  defineMetrics,
  defineRef,
  defineRetention,
  defineRoutes,
  defineRunService,
  defineService,
  optional,
} from './definitions.ts'
