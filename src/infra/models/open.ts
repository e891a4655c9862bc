import type { Clock, Log, Models } from '../../state/ports.ts'
import type { Config } from '../config.ts'
import { offlineModel } from './offline/fetch.ts'
import { openModels } from './openai.ts'

const clocks = { firstByteMs: 60_000, idleMs: 60_000, totalMs: 600_000 }
const retry = { attempts: 4, baseMs: 500, maxMs: 20_000 }

/** The models the settings name: an OpenAI-compatible server, or without one the built-in offline model. */
export const openConfiguredModels = async (
  openai: Config['openai'],
  clock: Clock,
  log: Log,
): Promise<Models> => {
  if (openai) {
    const models = openModels({
      ...(openai.apiKey && { apiKey: openai.apiKey }),
      ...(openai.baseUrl && { baseUrl: openai.baseUrl }),
      model: openai.model,
      clocks,
      retry,
      clock,
      log,
    })
    return models
  }
  const { createOfflineFetch } = await import('./offline/fetch.ts')
  const models = openModels({
    apiKey: 'offline',
    baseUrl: 'http://offline.invalid/v1',
    model: offlineModel,
    fetch: createOfflineFetch(),
    clocks,
    retry,
    clock,
    log,
  })
  return {
    ...models,
    knows: (model) => model === offlineModel,
    describe: () => ({ name: offlineModel, offline: true, base_url: null }),
  }
}
