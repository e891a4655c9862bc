// biome-ignore-all lint/performance/noBarrelFile: this file is the public face of the package

/** What products and agent developers import from `mason`. */

export { defineNode, defineTool } from './graph/definitions.ts'
export { readConfig, readEnvironment } from './infra/config/config.ts'
export { signJob } from './infra/queue/signed-jobs.ts'
export { loadProject, type Project } from './project/load-project.ts'
export { defineConfig, type ProjectConfig } from './project/project-config.ts'
export type { BusinessApi, Runtime } from './runtime/api.ts'
export { openRuntime } from './runtime/open-runtime.ts'
export { submitRun } from './runtime/submit-run.ts'
export { createDataFence, ownText } from './state/provenance.ts'
export type { RunRequest } from './state/run-request.ts'
export type { RunEvent, RunView, SessionView } from './state/run-view.ts'
export { type RuntimeState, runtimeStateJsonSchema } from './state/runtime-state.ts'
