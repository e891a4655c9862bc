import type { ForgetOfBusiness } from '../../accounts/businesses.ts'
import type { Database } from '../../infra/database/database.ts'
import type { PageRequest } from '../../infra/database/pagination.ts'
import type { ModelCaller } from '../../models/ports/model-ports.ts'
import { MasonError } from '../../state/errors.ts'
import type { MemoryView, UserKnowledge } from '../../state/memory-view.ts'
import type { Embeddings } from '../../state/ports/embeddings.ts'
import type { Memories } from '../../state/ports/memories.ts'
import type { Models } from '../../state/ports/models.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { VisitNote } from '../../state/ports/tracer.ts'
import type { Page } from '../../state/run-view.ts'
import type { RunClaim } from '../runs/claim.ts'
import { deleteSessionWith } from './delete-session.ts'

/** The memories of a business's users, for its API. */
export type MemoriesApi = {
  /** Newest first. */
  list(filter: PageRequest & { user_id: string }): Promise<Page<MemoryView>>
  /** Memories related to a text, the best first, with their relevance. */
  search(
    filter: { user_id: string; query: string; limit: number },
    signal: AbortSignal,
  ): Promise<MemoryView[]>
  /** All memories of a user, superseded ones included. */
  export(userId: string): AsyncIterable<MemoryView>
  /** The summaries of a user's sessions. */
  summaries(userId: string): AsyncIterable<UserKnowledge['summaries'][number]>
  /** The profile of a user, with the source of each field. */
  profile(userId: string): Promise<UserKnowledge['profile']>
  /**
   * Deletes a memory for good, with those it superseded, the profile fields that say the same, the summaries that repeat
   * it, and what the user's runs so far were about to teach. False: no memory has this id.
   */
  forget(id: string): Promise<boolean>
  /** Deletes all of a user, learned fields, summaries and pending lessons included. Safe to repeat. */
  forgetAll(userId: string): Promise<void>
}

/** Milliseconds between two polls of an empty queue, and that learning from one run may take. */
export type LearningTimes = { everyMs?: number; leaseMs?: number }

/** What is learned and recalled of users. */
export type UserMemory = {
  openRun(run: RunClaim, models: Models, visit?: VisitNote): Memories
  similarityFor(caller: ModelCaller): Embeddings
  of(businessId: string): MemoriesApi
  /** Deletes everything of a session and what only it has taught. False: there is no such session. */
  deleteSession(database: Database, businessId: string, sessionId: string): Promise<boolean>
  /** Marks a run that teaches nothing. */
  skipLearning(sql: Sql, businessId: string, runId: string): Promise<unknown>
  forgetOfBusiness: ForgetOfBusiness
  /** Learns from ended runs and keeps vectors up to date, in the background. */
  startWork(options: LearningTimes & { modelsFor(caller: ModelCaller): Models }): { close(): Promise<void> }
}

const refuse = (): never => {
  throw new MasonError('not_found', 'this server remembers nothing of users', {
    remedy: 'run it with the feature that has a memory',
  })
}

/** Nothing is learned and recalled, without the feature for it. */
export const noUserMemory: UserMemory = {
  openRun: () => ({
    any: async () => false,
    search: async () => [],
    recall: async () => [],
    remember: async () => refuse(),
  }),
  similarityFor: () => ({ compare: async () => null }),
  of: refuse,
  deleteSession: (...of) => deleteSessionWith(null, ...of),
  skipLearning: async () => {},
  forgetOfBusiness: async () => {},
  startWork: () => ({ close: async () => {} }),
}
