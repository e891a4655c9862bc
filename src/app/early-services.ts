import { configRef, inProcessModelRef, responseFormatsRef } from '../features/core.ref.ts'
import { openFeatures, provide } from '../features/load-features.ts'
import type { Config } from '../infra/config/config.ts'
import type { InProcessModel } from '../models/providers/in-process-model.ts'
import { noResponseFormats, type ResponseFormats } from '../models/providers/response-formats.ts'
import { featureSources } from './features.generated.ts'

/** The model of a process whose settings name none; null: they do, or no feature has one. The registry opens with it, before all services. */
export const findInProcessModel = async (config: Config): Promise<InProcessModel | null> => {
  if (config.openai !== null) return null
  const core = [provide(configRef, config)]
  return (await openFeatures(featureSources, core, [inProcessModelRef])).find(inProcessModelRef)
}

/** What reads answers in formats of vendors. The registry opens with those that are built in, before all services. */
export const findResponseFormats = async (): Promise<ResponseFormats> =>
  (await openFeatures(featureSources, [], [responseFormatsRef])).find(responseFormatsRef) ?? noResponseFormats
