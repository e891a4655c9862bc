// biome-ignore-all lint/performance/noBarrelFile: this file is the public face of the package

/** What products and agent developers import from `mason-runtime`. */

export type { BusinessApi, Runtime } from './app/api.ts'
export { serveHttp } from './app/http/serve-http.ts'
export { openRuntime } from './app/open-runtime.ts'
export { readConfig } from './app/read-config.ts'
export type { RuntimeOptions } from './app/runtime-options.ts'
export { startWorker } from './app/start-worker.ts'
export { errorDraft, readCallInput, resultDraft } from './graph/call-drafts.ts'
export {
  defineNode,
  defineTool,
  type NodeContext,
  type RawBody,
  type ToolContext,
  type ToolDefinition,
  type ToolEffects,
} from './graph/definitions.ts'
export { requestJson } from './graph/json-request.ts'
export { type Config, readEnvironment } from './infra/config/config.ts'
export { signJob } from './infra/queue/signed-jobs.ts'
export { submitRun } from './producer/submit-run.ts'
export { loadProject, type Project } from './project/load-project.ts'
export { defineConfig, type ProjectConfig } from './project/project-config.ts'
export type { ActionDraft } from './state/checkpoint.ts'
export { EffectRefusedError, isMasonError, MasonError } from './state/errors.ts'
export type { EffectRequest } from './state/ports/effects.ts'
export type { PersonAnswer, Question } from './state/ports/questions.ts'
export type { Services } from './state/ports/services.ts'
export type { WaitOutcome, WaitRequest } from './state/ports/waits.ts'
export { createDataFence, ownText, type PromptText } from './state/provenance.ts'
export type { AdmittedRequest, RunRequest } from './state/run-request.ts'
export type { RunEvent, RunView, SessionView } from './state/run-view.ts'
export {
  type Json,
  type OriginFile,
  type RuntimeState,
  runtimeStateJsonSchema,
  type Usage,
} from './state/runtime-state.ts'
export type { Scenario } from './state/scenario.ts'
export { cutText } from './state/text/cut-text.ts'
export { noUsage } from './state/token-usage.ts'
