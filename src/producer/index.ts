// biome-ignore-all lint/performance/noBarrelFile: this file is the public face of mason-runtime/queue

/** What programs import from `mason-runtime/queue`. */

export type { JobOutcome } from '../infra/queue/job-outcome.ts'
export { signJob } from '../infra/queue/signed-jobs.ts'
export { createProducer, type Producer, type SentJob } from './create-producer.ts'
export { submitRun } from './submit-run.ts'
