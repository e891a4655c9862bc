import { configRef, inProcessModelRef } from '../features/core.ref.ts'
import { openFeatures, provide } from '../features/load-features.ts'
import type { Config } from '../infra/config/config.ts'
import type { InProcessModel } from '../models/providers/in-process-model.ts'
import { featureSources } from './features.generated.ts'

/** The model of a process whose settings name none; null: they do, or no feature has one. The registry opens with it, before all services. */
export const findInProcessModel = async (config: Config): Promise<InProcessModel | null> => {
  if (config.openai !== null) return null
  const core = [provide(configRef, config)]
  return (await openFeatures(featureSources, core, [inProcessModelRef])).find(inProcessModelRef)
}
