import { useEffect, useState } from 'react'
import { ApiError, call } from '../api.ts'
import { follow, type StreamEvent } from '../event-stream.ts'
import type { Action, Run, RunStatus, Todo } from '../types.ts'

/** A run as it is now, and each of its actions exactly once, in their order. */
export type LiveRun = {
  run: Run | null
  actions: Action[]
  todos: Todo[]
  /** What a model is writing now. */
  writing: { node: string; text: string } | null
  isConnected: boolean
  error: Error | null
}

const none: LiveRun = { run: null, actions: [], todos: [], writing: null, isConnected: true, error: null }
const endStatuses: RunStatus[] = ['completed', 'failed', 'cancelled']
export const hasEnded = (run: Run): boolean => endStatuses.includes(run.status)

/** The actions with the others; those of a known id take its place. */
const merge = (known: Action[], more: Action[]): Action[] => {
  if (more.length === 0) return known
  const last = known.at(-1)?.id ?? 0
  if (more.every(({ id }, at) => id > (at === 0 ? last : (more[at - 1]?.id ?? 0)))) return [...known, ...more]
  const byId = new Map(known.map((action) => [action.id, action]))
  for (const action of more) byId.set(action.id, { ...byId.get(action.id), ...action })
  return [...byId.values()].sort((a, b) => a.id - b.id)
}

const applyEvents = (state: LiveRun, events: StreamEvent[]): LiveRun => {
  let { run, todos, writing } = state
  const actions: Action[] = []
  for (const { event, data } of events) {
    if (event === 'action') {
      actions.push(data as Action)
      writing = null
    } else if (event === 'todos') todos = (data as { todos: Todo[] }).todos
    else if (event === 'done') run = data as Run
    else if (event === 'status' && run)
      run = { ...run, operator_request: null, ...(data as Pick<Run, 'status'>), input_request: null }
    else if (event === 'input_required' && run)
      run = { ...run, status: 'input_required', input_request: data as Run['input_request'] }
    else if (event === 'consent_required' && run)
      run = { ...run, consent_request: data as Run['consent_request'] }
    else if (event === 'delta') {
      const { node, text } = data as { node: string; text: string }
      writing = { node, text: ((writing?.node === node ? writing.text : '') + text).slice(-2000) }
    }
  }
  return { ...state, run, todos, writing, actions: merge(state.actions, actions) }
}

/** Reads the run and what was committed, page after page, then follows its stream. */
export const useLiveRun = (id: string, business_id: string): LiveRun => {
  const [state, setState] = useState<LiveRun>(none)
  useEffect(() => {
    const abort = new AbortController()
    let stop = (): void => {}
    const path = `/v1/runs/${encodeURIComponent(id)}`
    const fail = (error: Error): void => setState((old) => ({ ...old, error }))

    const readRun = async (): Promise<Run> => {
      const run = await call<Run>(path, { query: { business_id }, signal: abort.signal })
      setState((old) => ({ ...old, run }))
      return run
    }
    const readActions = async (run: Run, from: number): Promise<number> => {
      const list = `/v1/sessions/${encodeURIComponent(run.session_id)}/actions`
      for (let after = from; ; ) {
        const query = { business_id, turn: run.turn, limit: 500, after }
        const page = await call<{ data: Action[]; has_more: boolean }>(list, { query, signal: abort.signal })
        setState((old) => ({ ...old, actions: merge(old.actions, page.data) }))
        after = page.data.at(-1)?.id ?? after
        if (!page.has_more || page.data.length === 0) return after
      }
    }
    const start = async (): Promise<void> => {
      const run = await readRun()
      const after = await readActions(run, 0)
      if (abort.signal.aborted) return
      stop = follow(`${path}/events`, business_id, after, {
        onEvents: (events) => setState((old) => applyEvents(old, events)),
        onConnection: (isConnected) => setState((old) => ({ ...old, isConnected })),
        onEnd: (error) => {
          if (error) return fail(error)
          // model calls are entered shortly after their action
          timer = setTimeout(() => void readActions(run, Math.max(0, after - 20)).catch(fail), 1500)
        },
      })
    }
    let timer: ReturnType<typeof setTimeout> | undefined
    setState(none)
    // a run that is deleted ends its stream; one that has ended has no stream that tells
    const watch = setInterval(() => {
      if (!document.hidden)
        readRun().catch((error: Error) => error instanceof ApiError && error.status === 404 && fail(error))
    }, 10_000)
    const begin = (): void =>
      void start().catch((error: Error) => {
        if (abort.signal.aborted) return
        if (error instanceof ApiError && error.status === 0) timer = setTimeout(begin, 2000)
        fail(error)
      })
    begin()
    return () => {
      abort.abort()
      clearTimeout(timer)
      clearInterval(watch)
      stop()
    }
  }, [id, business_id])
  return state
}
