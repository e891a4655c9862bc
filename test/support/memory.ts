import { computeHashEmbedding, hashSpace } from '../../src/features/user-memory/policy/hash-embedding.ts'
import { distillRuns } from '../../src/features/user-memory/store/distill-run.ts'
import {
  claimDistillations,
  type RunToDistill,
} from '../../src/features/user-memory/store/distillation-queue.ts'
import type { MemoryEmbedder } from '../../src/features/user-memory/store/embedder.ts'
import { readTurnBacklog } from '../../src/features/user-memory/store/turn-backlog.ts'
import type { Database } from '../../src/infra/database/database.ts'
import type { ModelRequest, Models } from '../../src/state/ports/models.ts'
import type { Sql } from '../../src/state/ports/sql.ts'
import { deferred } from './deferred.ts'
import { never } from './models.ts'
import { count, until } from './runs.ts'
import { deadline, type TestRuntime } from './test-runtime.ts'

/** The built-in embedding alone, as where the registry has no model for it. */
export const hashOnly: MemoryEmbedder = {
  current: () => hashSpace,
  offers: (space) => space === hashSpace,
  embed: async (_space, texts) => texts.map(computeHashEmbedding),
}

/** A memory as a model tells it that has found it in what the user said. */
export const lessonOf = (kind: string, evidence: string, content: string) => ({
  ...{ evidence, content, kind },
  ...{ stance: 'asserts' as const, is_about_user: true, is_lasting: true, is_stated: true, is_new: true },
})

/** Everything that a generator gives. */
export const collectAll = async <Item>(items: AsyncIterable<Item>): Promise<Item[]> => {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}

/** Claims the run that has been due for longest. */
export const claimDistillation = async (sql: Sql, leaseMs: number): Promise<RunToDistill | null> =>
  (await claimDistillations(sql, leaseMs, (due) => due.slice(0, 1)))[0] ?? null

/** Learns from all that waits, one run after the other; gives how many. */
export const learnAll = async (parts: Parameters<typeof distillRuns>[0]): Promise<number> => {
  for (let learned = 0; ; learned++) {
    const claim = await claimDistillation(parts.database, 60_000)
    if (!claim) return learned
    await distillRuns(parts, [claim], never())
  }
}

/** Makes turns of all that was said, as if the background had never read any of it. */
export const readBacklog = async (database: Database): Promise<void> => {
  const left = () => count(database, 'businesses WHERE turns_read_to IS NOT NULL AND recall AND learning')
  await database.query("UPDATE businesses SET turns_read_to = ''")
  do await readTurnBacklog(database, hashSpace, 1, never())
  while ((await left()) > 0)
}

type Api = ReturnType<TestRuntime['of']>
/** Models whose planners wait for a gate while it is closed, those for whose request `waits` is true. */
export const gatedModels = (models: Models, waits: (request: ModelRequest) => boolean = () => true) => {
  let gate: ReturnType<typeof deferred<void>> | null = null
  let atGate = 0
  const release = (): void => {
    gate?.resolve()
    gate = null
  }
  const gated: Models = {
    ...models,
    async call(request, signal) {
      if (gate && request.role === 'planner' && waits(request)) {
        atGate++
        await gate.promise
      }
      return models.call(request, signal)
    },
  }
  /** Closes the gate for a run, whose planner waits now. Gives what opens it and resolves with the run that has ended. */
  const open = async (api: Api, request: Parameters<Api['submit']>[0]) => {
    gate ??= deferred()
    const before = atGate
    const { run } = await api.submit(request)
    await until('the planner to be asked', () => atGate > before)
    return () => {
      release()
      return api.wait(run, deadline())
    }
  }
  return { models: gated, open, release }
}
