import type { MemoryView, UserKnowledge } from '../state/memory-view.ts'
import type { RunRequest } from '../state/run-request.ts'
import type { Page, RunEvent, RunStatus, RunView, SessionView } from '../state/run-view.ts'
import type { Json, RuntimeState } from '../state/runtime-state.ts'
import type { UploadedFile } from '../state/uploaded-file.ts'
import { type EventSource, type FollowOptions, streamEvents } from './event-stream.ts'
import { createHttp, type ServerTarget } from './http.ts'
import { readLastEventId, toEventResponse } from './relay-events.ts'
import { type ReceivedFile, type UploadOptions, uploadFile } from './upload.ts'

/** Where the server is, and on whose behalf the client calls. */
export type ClientOptions = ServerTarget & {
  /** With the admin token: the business to act for. */
  businessId?: string | undefined
}

/** What every call takes. */
export type CallOptions = { signal?: AbortSignal | undefined }

/** A run as it was accepted. */
export type SubmittedRun = { id: string; session_id: string; turn: number; status: RunStatus }

/** What a call under an idempotency key takes. */
type KeyedOptions = CallOptions & { idempotencyKey?: string | undefined }

/** One page of a list: `limit` items at most (absent: 50), from `cursor` on. */
type PageFilter = { limit?: number; cursor?: string }

const unfinished: ReadonlySet<RunStatus> = new Set<RunStatus>(['queued', 'running'])

/**
 * A client of the HTTP API, for Node, browsers, Deno and Bun. Reads are repeated where no response comes; of the rest only
 * `submit` and `retry`, under their idempotency keys. Failed calls throw a `ClientError`.
 *
 * @example
 * ```ts
 * import { createClient } from 'mason-runtime/client'
 *
 * const client = createClient({ url: 'http://127.0.0.1:8080', token: 'the-token-of-the-business' })
 * const run = await client.submit({ prompt: 'What is 12.5% of 480?', user_id: 'ann' })
 * for await (const event of client.events({ run_id: run.id })) {
 *   if (event.event === 'delta') console.log(event.data.text)
 *   if (event.event === 'done') console.log(event.data.answer)
 * }
 * ```
 */
export const createClient = ({ businessId, ...target }: ClientOptions) => {
  const http = createHttp(target)
  const scope = { business_id: businessId }
  const read = <Value>(path: string, query: object = {}, { signal }: CallOptions = {}): Promise<Value> =>
    http.json<Value>('GET', path, { query: { ...query, ...scope }, signal, repeatable: true })
  const post = <Value>(path: string, json: unknown, { signal }: CallOptions = {}): Promise<Value> =>
    http.json<Value>('POST', path, { query: scope, json, signal })
  const remove = async (path: string, { signal }: CallOptions = {}, query: object = {}): Promise<void> => {
    await http.call('DELETE', path, { query: { ...query, ...scope }, signal })
  }
  const postOnce = (
    path: string,
    json: unknown,
    { idempotencyKey = crypto.randomUUID(), signal }: KeyedOptions = {},
  ): Promise<SubmittedRun> =>
    http.json<SubmittedRun>('POST', path, {
      query: scope,
      json,
      headers: { 'Idempotency-Key': idempotencyKey },
      repeatable: true,
      signal,
    })
  const toPath = (kind: 'runs' | 'sessions' | 'memories' | 'files', id: string, rest = ''): string =>
    `/v1/${kind}/${encodeURIComponent(id)}${rest}`
  const events = (source: EventSource, options?: FollowOptions): AsyncGenerator<RunEvent> =>
    streamEvents(http, scope, source, options)

  return {
    /**
     * Submits a run, once: the request is repeated under its key until there is a response. A key of your own makes it one run
     * also over restarts of your program (24 h).
     */
    submit: (request: RunRequest, options?: KeyedOptions): Promise<SubmittedRun> =>
      postOnce('/v1/runs', request, options),
    /** Submits the request of a failed run again, once, as the next turn of its session; `run_not_failed` for others. */
    retry: (runId: string, options?: KeyedOptions): Promise<SubmittedRun> =>
      postOnce(toPath('runs', runId, '/retry'), undefined, options),
    /** The run once it is completed, failed, cancelled or waits for input. */
    async wait(runId: string, { signal }: CallOptions = {}): Promise<RunView> {
      for await (const { event, data } of events({ run_id: runId }, { signal })) {
        if (event === 'done') return data
        if (event === 'status' && !unfinished.has(data.status)) break
      }
      return read<RunView>(toPath('runs', runId), {}, { signal })
    },
    /**
     * The events of a run, until it has ended, or of a session, until the signal aborts: each action exactly once, over as many
     * connections as needed. Snapshots (`status`, `todos`, `input_required`) come again with each connection.
     */
    events,
    /** The same for a page of your own: the response to its EventSource, which goes on after a lost connection. */
    relay(
      source: EventSource,
      request: Request,
      /** Leaves out or changes what the page must not see. */
      select: (event: RunEvent) => RunEvent | null = (event) => event,
    ): Response {
      const gone = new AbortController()
      const stop = (): void => gone.abort()
      request.signal.addEventListener('abort', stop, { once: true })
      async function* selected(): AsyncGenerator<RunEvent> {
        for await (const event of events(source, { after: readLastEventId(request), signal: gone.signal })) {
          const shown = select(event)
          if (shown) yield shown
        }
      }
      return toEventResponse(selected(), stop)
    },
    /** Answers the question that a run waits for; `invalid_request` where the answer does not fit its schema. */
    answer: (runId: string, requestId: string, answer: Json, options?: CallOptions): Promise<RunView> =>
      post(toPath('runs', runId, '/input'), { request_id: requestId, answer }, options),
    /** Cancels a run; `run_ended` for completed and failed ones. */
    cancel: (runId: string, reason?: string, options?: CallOptions): Promise<RunView> =>
      post(toPath('runs', runId, '/cancel'), { reason }, options),
    runs: {
      get: (runId: string, options?: CallOptions): Promise<RunView> =>
        read(toPath('runs', runId), {}, options),
      list: (
        filter: PageFilter & {
          user_id?: string
          session_id?: string
          status?: RunStatus
          /** The run that this key created; of a queue job: its id. */
          idempotency_key?: string
          /** Submitted on this day of UTC, at this time, or later; and up to this day, or before this time. */
          from?: string
          to?: string
          /** Completed for this reason. */
          finish_reason?: NonNullable<RunView['finish_reason']>
          /** Failed with this code; failed at this node or tool. */
          error?: string
          node?: string
          /** `asc`: the oldest first. */
          order?: 'asc' | 'desc'
          /** Members of the metadata that all match: texts whole, other values by their JSON. */
          metadata?: Record<string, string | number | boolean | null>
        } = {},
        options?: CallOptions,
      ): Promise<Page<RunView>> => {
        const { metadata = {}, ...query } = filter
        const members = Object.entries(metadata).map(([name, value]) => [`metadata.${name}`, String(value)])
        return read('/v1/runs', { ...query, ...Object.fromEntries(members) }, options)
      },
      state: (runId: string, options?: CallOptions): Promise<RuntimeState> =>
        read(toPath('runs', runId, '/state'), {}, options),
    },
    sessions: {
      get: (sessionId: string, options?: CallOptions): Promise<SessionView> =>
        read(toPath('sessions', sessionId), {}, options),
      list: (
        filter: PageFilter & { user_id?: string } = {},
        options?: CallOptions,
      ): Promise<Page<SessionView>> => read('/v1/sessions', filter, options),
      /** A new session with everything up to this action. */
      fork: (sessionId: string, actionId: number, options?: CallOptions): Promise<SessionView> =>
        post(toPath('sessions', sessionId, '/fork'), { action_id: actionId }, options),
      delete: (sessionId: string, options?: CallOptions): Promise<void> =>
        remove(toPath('sessions', sessionId), options),
    },
    memories: {
      /** Newest first; with `query` those that are related, the best first. */
      list: (
        filter: PageFilter & { user_id: string; query?: string },
        options?: CallOptions,
      ): Promise<Page<MemoryView>> => read('/v1/memories', filter, options),
      export: (userId: string, options?: CallOptions): Promise<Page<MemoryView> & UserKnowledge> =>
        read('/v1/memories/export', { user_id: userId }, options),
      delete: (memoryId: string, options?: CallOptions): Promise<void> =>
        remove(toPath('memories', memoryId), options),
      /** All that was learned of a user. */
      deleteAll: (userId: string, options?: CallOptions): Promise<void> =>
        remove('/v1/memories', options, { user_id: userId }),
    },
    files: {
      /** Up to 512 MB, in chunks; after a lost connection it goes on where the server is. In Node: `await openAsBlob(path)`. */
      upload: (content: Blob | Uint8Array<ArrayBuffer>, options: UploadOptions): Promise<ReceivedFile> =>
        uploadFile(http, scope, content, options),
      get: (fileId: string, options?: CallOptions): Promise<UploadedFile> =>
        read(toPath('files', fileId), {}, options),
      delete: (fileId: string, options?: CallOptions): Promise<void> =>
        remove(toPath('files', fileId), options),
    },
  }
}

/**
 * See `createClient`.
 *
 * @example
 * ```ts
 * import type { Client } from 'mason-runtime/client'
 *
 * const ask = async (client: Client, prompt: string): Promise<string | null> =>
 *   (await client.wait((await client.submit({ prompt, user_id: 'ann' })).id)).answer
 * ```
 */
export type Client = ReturnType<typeof createClient>
