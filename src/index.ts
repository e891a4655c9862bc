// biome-ignore-all lint/performance/noBarrelFile: this file is the public face of the package

/** What products and agent developers import from `mason`. */

export { defineNode } from './graph/node.ts'
export { defineTool } from './graph/tool.ts'
export { readConfig, readEnvironment } from './infra/config.ts'
export { openRuntime } from './runtime.ts'
export type { BusinessApi, Runtime } from './runtime-api.ts'
export type { RunRequest } from './state/run-request.ts'
export type { RunEvent, RunView, SessionView } from './state/run-view.ts'
export { type RuntimeState, runtimeStateJsonSchema } from './state/runtime-state.ts'
export { submitRun } from './submit-run.ts'
