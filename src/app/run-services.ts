import { createUserProfiles } from '../accounts/users.ts'
import type { RunClaim } from '../engine/runs/claim.ts'
import type { ServiceFactories } from '../engine/runs/run-services.ts'
import { type FeatureSource, type Features, listFiles } from '../features/load-features.ts'
import { createBlobs } from '../files/blobs/blobs.ts'
import { createFileService } from '../files/run-files.ts'
import type { Config } from '../infra/config/config.ts'
import { createRunMemories } from '../memory/store/run-memories.ts'
import { createTextSimilarity } from '../memory/store/text-similarity.ts'
import type { ModelCaller } from '../models/ports/model-ports.ts'
import { openOwnServices } from '../project/own-services.ts'
import type { FeatureServices } from '../state/ports/services.ts'
import type { Drivers } from './open-drivers.ts'
import type { ModelLayer } from './open-models.ts'
import { findAgents } from './open-runtime-features.ts'
import type { RuntimeOptions } from './runtime-options.ts'

type ServiceParts = Drivers & {
  sources: readonly FeatureSource[]
  config: Config
  layer: ModelLayer
  features: Features
}

/** Opens the services of nodes and tools, which are made for each run: those of the core, of features and of the product. */
export const openRunServices = async (parts: ServiceParts, { setup }: RuntimeOptions) => {
  const { config, layer, features, clock, log, egress, closers } = parts
  const files = createFileService({
    egress,
    storage: config.storage,
    filesRoot: config.filesRoot,
    log,
    readers: listFiles(parts.sources, 'reader').map(({ path }) => path),
  })
  closers.use(files)
  const memoryParts = {
    database: parts.workerDatabase,
    embedder: layer.embedder,
    log,
    tracer: parts.tracer,
    recall: config.recall,
  }
  const similarityFor = createTextSimilarity(layer.embedder)
  /** A new one of the core is a line here. */
  const ofCore: Omit<ServiceFactories, keyof FeatureServices> = {
    models: (run) => layer.for(toCaller(run)),
    embeddings: (run) => similarityFor(toCaller(run)),
    clock: () => clock,
    log: () => log,
    files: (run, sql) => files.openRunFiles(sql, run),
    media: (run) => layer.media(toCaller(run)),
    blobs: (run, sql) => createBlobs(sql, run),
    users: (run, sql) => createUserProfiles(sql, run.tenant, run),
    agents: (run, sql) => findAgents(features, sql, run.tenant),
    memories: (run) => {
      const models = layer.for(toCaller(run))
      return createRunMemories(
        { ...memoryParts, clock, models, ...(models.rerank && { rerank: models.rerank }) },
        { business: run.tenant, user_id: run.user_id },
        run,
      )
    },
  }
  const builtIn = { ...ofCore, ...(await features.loadRunServices(Object.keys(ofCore))) }
  const own = await openOwnServices(setup, log, Object.keys(builtIn))
  closers.add(own.close)
  return { files, memoryParts, services: { ...builtIn, ...own.factories } }
}

const toCaller = ({ tenant: business_id, user_id, run_id }: RunClaim): ModelCaller => ({
  business_id,
  user_id,
  run_id,
})
