import type { FakeReply, FakeRequest, FakeResponder } from '../../test/support/fake-model/types.ts'
import { seededPick, seededShare } from '../seeded-choice.ts'
import { badModels } from './failures.ts'

/** A run's prompt names it, so that each request to the model is known to be of it. */
export const promptOf = (run: number): string =>
  `Run number ${run}. ${run % 2 === 0 ? 'Divide, then answer. '.repeat(25) : ''}`

/** The run a request is of. */
const runOf = ({ messages }: Pick<FakeRequest, 'messages'>): number => {
  const found = /Run number (\d+)\./.exec(JSON.stringify(messages))?.[1]
  if (found === undefined) throw new Error('a model request that names no run')
  return Number(found)
}

/** A request as the verdict needs it. */
export type ModelRequestRecord = { request: FakeRequest; failure: (typeof badModels)[number] | null }

/**
 * A model server with seeded failures. Most runs meet some now and then; every fourth is cursed: one failure, in nearly
 * every reply. Keeps what each run asked, in order. `calm` switches the failures off and on.
 */
export const createResponder = (
  seed: number,
): { responder: FakeResponder; requests: Map<number, ModelRequestRecord[]>; calm(is: boolean): void } => {
  let isCalm = false
  const requests = new Map<number, ModelRequestRecord[]>()
  const responder: FakeResponder = (request) => {
    const run = runOf(request)
    const earlier = requests.get(run) ?? []
    const failure = isCalm ? null : failureFor(seed, run, earlier.length)
    requests.set(run, [...earlier, { request, failure }])
    return { ...healthy(request, run), ...(failure && { failure: failure.failure }) }
  }
  const calm = (is: boolean): void => {
    isCalm = is
  }
  return { responder, requests, calm }
}

const failureFor = (seed: number, run: number, nth: number): ModelRequestRecord['failure'] => {
  const cursed = run % 4 === 0
  if (seededShare(seed, run, nth, 'strikes') > (cursed ? 0.95 : 0.35)) return null
  return cursed ? seededPick(badModels, seed, run, 'curse') : seededPick(badModels, seed, run, nth, 'failure')
}

/** Two calls, of which one fails, so that reflection asks the model; then the end. */
const healthy = ({ role, messages, nth }: FakeRequest, run: number): FakeReply => {
  const usage = { prompt_tokens: 100 + (nth % 50), completion_tokens: 7, total_tokens: 107 + (nth % 50) }
  if (role === 'reflection') return { text: '{"reasoning":"seen","is_sufficient":true}', usage }
  if (role === 'understand') return { text: '{"scenario":"test","task_goal":"divide"}', usage }
  if (role === 'output') return { text: `{"answer":"Run ${run} is done."}`, usage }
  const answered = messages.some(
    (message) => message.role === 'tool' && !/^Refused/.test(String(message.content)),
  )
  if (answered) return { text: `Run ${run} is done, all ø and 💩.`, usage }
  const calls = ['1/0', `${run} + 1`].map((expression) => ({ name: 'calculate', arguments: { expression } }))
  return { text: 'Dividing.', tool_calls: calls, usage }
}
