import { createUserProfiles } from '../accounts/users.ts'
import type { RunClaim } from '../engine/runs/claim.ts'
import type { ServiceFactories } from '../engine/runs/run-services.ts'
import type { UserMemory } from '../engine/sessions/user-memory.ts'
import { type FeatureSource, listFilesOfKinds } from '../features/definition-files.ts'
import type { Features } from '../features/load-features.ts'
import { createBlobs } from '../files/blobs/blobs.ts'
import { createFileService, type FileService } from '../files/run-files.ts'
import type { Config } from '../infra/config/config.ts'
import type { ModelCaller } from '../models/ports/model-ports.ts'
import { openOwnServices } from '../project/own-services.ts'
import type { FeatureServices } from '../state/ports/services.ts'
import type { VisitNote } from '../state/ports/tracer.ts'
import type { Drivers } from './open-drivers.ts'
import type { ModelLayer } from './open-models.ts'
import { findAgents, findMediaModels } from './open-runtime-features.ts'
import type { RuntimeOptions } from './runtime-options.ts'

type ServiceParts = Drivers & {
  layer: ModelLayer
  files: FileService
  features: Features
  memory: UserMemory
}

/** Opens the files of the runs of this process. */
export const openFiles = (
  config: Config,
  { egress, log, closers }: Drivers,
  sources: readonly FeatureSource[],
): FileService => {
  const files = createFileService({
    egress,
    storage: config.storage,
    filesRoot: config.filesRoot,
    log,
    readers: listFilesOfKinds(sources, 'reader').map(({ path }) => path),
  })
  closers.use(files)
  return files
}

/** Opens the services of nodes and tools, which are made for each run: those of the core, of features and of the product. */
export const openRunServices = async (parts: ServiceParts, { setup }: RuntimeOptions) => {
  const { layer, features, files, clock, log, closers } = parts
  /** A new one of the core is a line here. */
  const ofCore: Omit<ServiceFactories, keyof FeatureServices> = {
    models: (run, _, visit) => layer.for(toCaller(run, visit)),
    embeddings: (run, _, visit) => parts.memory.similarityFor(toCaller(run, visit)),
    clock: () => clock,
    log: () => log,
    files: (run, sql) => files.openRunFiles(sql, run),
    media: (run, _, visit) => findMediaModels(features, toCaller(run, visit)),
    blobs: (run, sql) => createBlobs(sql, run),
    users: (run, sql) => createUserProfiles(sql, run.tenant, run),
    agents: (run, sql) => findAgents(features, sql, run.tenant),
    memories: (run, _, visit) => parts.memory.openRun(run, layer.for(toCaller(run, visit)), visit),
  }
  const builtIn = { ...ofCore, ...(await features.loadRunServices(Object.keys(ofCore))) }
  const own = await openOwnServices(setup, log, Object.keys(builtIn))
  closers.add(own.close)
  return { ...builtIn, ...own.factories }
}

const toCaller = (
  { tenant: business_id, user_id, run_id }: RunClaim,
  visit: VisitNote | undefined,
): ModelCaller => ({ business_id, user_id, run_id, visit })
