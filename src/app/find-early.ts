import { configRef, inProcessModelRef, responseFormatsRef } from '../features/core.ref.ts'
import type { Ref } from '../features/definitions.ts'
import { findService, provide } from '../features/load-features.ts'
import type { Config } from '../infra/config/config.ts'
import type { InProcessModel } from '../models/providers/in-process-model.ts'
import { noResponseFormats, type ResponseFormats } from '../models/providers/response-formats.ts'
import { featureSources } from './features.generated.ts'

/** What a process needs before all services, and what itself needs the settings alone; null: no feature provides it. */
export const findEarly = <Value>(config: Config, ref: Ref<Value>): Promise<Value | null> =>
  findService(featureSources, ref, [provide(configRef, config)])

/** The model of a process whose settings name none; null: they do, or no feature has one. */
export const findInProcessModel = async (config: Config): Promise<InProcessModel | null> =>
  config.openai === null ? findEarly(config, inProcessModelRef) : null

/** What reads answers in formats of vendors. The registry opens with those that are built in. */
export const findResponseFormats = async (): Promise<ResponseFormats> =>
  (await findService(featureSources, responseFormatsRef)) ?? noResponseFormats
