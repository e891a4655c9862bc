import * as core from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { deleteSession } from './store/delete-session.ts'
import { skipLearning } from './store/distillation-queue.ts'
import { createMemoryEmbedder } from './store/embedder.ts'
import { forgetOfBusiness } from './store/forget.ts'
import { createMemoriesApi } from './store/memories-api.ts'
import { startMemoryWorker } from './store/memory-worker.ts'
import { createRunMemories } from './store/run-memories.ts'
import { createTextSimilarity } from './store/text-similarity.ts'

export default defineService({
  provides: core.userMemoryRef,
  needs: {
    config: core.configRef,
    database: core.databaseRef,
    workerDatabase: core.workerDatabaseRef,
    models: core.modelGatewayRef,
    readRegistry: core.registryViewRef,
    clock: core.clockRef,
    log: core.logRef,
    tracer: core.tracerRef,
  },
  start({ config, database, workerDatabase, models: { ask }, readRegistry, clock, log, tracer }) {
    const embedder = createMemoryEmbedder({ sql: database, ask, view: readRegistry })
    const parts = { database: workerDatabase, embedder, log, tracer, recall: config.recall, clock }
    const withoutMemories = new WeakSet<object>()
    return {
      openRun: (run, models, visit) =>
        createRunMemories(
          { ...parts, models, ...(models.rerank && { rerank: models.rerank }), withoutMemories },
          { business: run.tenant, user_id: run.user_id },
          run,
          visit,
        ),
      similarityFor: createTextSimilarity(embedder),
      of: (businessId) => createMemoriesApi({ database, embedder, log, tracer }, businessId),
      deleteSession,
      skipLearning,
      forgetOfBusiness,
      startWork: (options) =>
        startMemoryWorker({ ...parts, recallBacklogTokens: config.recallBacklogTokens, ...options }),
    }
  },
})
