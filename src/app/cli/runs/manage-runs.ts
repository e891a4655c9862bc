import type { Environment } from '../../../infra/config/config.ts'
import type { Scrubber } from '../../../infra/secrets/scrubber.ts'
import { MasonError } from '../../../state/errors.ts'
import type { RunView } from '../../../state/run-view.ts'
import type { RuntimeState } from '../../../state/runtime-state.ts'
import { exitCodes, UsageError } from '../errors.ts'
import { readHidden } from '../hidden-input.ts'
import { formatQuestion, parseAnswer } from '../input-prompt.ts'
import { type AdminTarget, withAdminClient } from '../models/admin-client.ts'
import { formatTable } from '../models/list-models.ts'
import { toOneLine, toPrintable } from '../terminal.ts'

/** Options of all commands of `mason runs`. */
export type RunTarget = AdminTarget & { business?: string; json?: boolean }
/** The options of `mason runs list`. */
export type ListRunsFlags = RunTarget & { status?: string; user?: string; session?: string; limit: string }

/** A value, and the text that shows it to a person. */
type Output = { value: unknown; text: string }
/** Calls of the API on behalf of one business. */
type RunsClient = {
  get<Value>(path: string, query?: Record<string, string | undefined>): Promise<Value>
  post<Value>(path: string, json?: unknown): Promise<Value>
}
/** One command of `mason runs`. */
export type RunsCommand = (client: RunsClient) => Promise<Output>

/** Runs a command against the server or database of the flags and prints what it gives. Returns the exit code. */
export const runRunsCommand = (
  command: RunsCommand,
  flags: RunTarget,
  env: Environment,
  scrubber: Scrubber,
): Promise<number> =>
  withAdminClient(flags, env, scrubber, async ({ call }) => {
    const scope = { business_id: flags.business }
    const { value, text } = await command({
      get: async <Value>(path: string, query = {}) =>
        (await call('GET', path, undefined, { ...query, ...scope })) as Value,
      post: async <Value>(path: string, json?: unknown) => (await call('POST', path, json, scope)) as Value,
    })
    const printed = flags.json ? JSON.stringify(value, null, 2) : text
    process.stdout.write(`${scrubber.text(printed)}\n`)
    return exitCodes.done
  })

const toPath = (id: string, rest = ''): string => `/v1/runs/${encodeURIComponent(id)}${rest}`

/** `mason runs list`. */
export const printRuns =
  ({ status, limit, user, session }: ListRunsFlags): RunsCommand =>
  async ({ get }) => {
    const { data } = await get<{ data: RunView[] }>('/v1/runs', {
      status,
      limit,
      user_id: user,
      session_id: session,
    })
    const rows = data.map(({ id, status, user_id, session_id, turn, created_at, prompt }) => [
      id,
      status,
      user_id,
      session_id,
      String(turn),
      created_at,
      prompt.length > 60 ? `${prompt.slice(0, 59)}…` : prompt,
    ])
    const head = ['ID', 'STATUS', 'USER', 'SESSION', 'TURN', 'CREATED', 'PROMPT']
    return { value: { runs: data }, text: rows.length === 0 ? 'no runs' : formatTable([head, ...rows]) }
  }

/** `mason runs show`. */
export const printRun =
  (id: string): RunsCommand =>
  async ({ get }) => {
    const run = await get<RunView>(toPath(id))
    const { error, answer, input_request } = run
    const lines = [
      `${run.id}: ${run.status}, turn ${run.turn} of session ${run.session_id}, user ${run.user_id}`,
      `created ${run.created_at}, ended ${run.ended_at ?? '-'}, ${run.usage.total_tokens} tokens`,
      ...(run.retry_of === null ? [] : [`retry of ${run.retry_of}`]),
      `prompt: ${toPrintable(run.prompt)}`,
      ...(answer === null ? [] : [`answer: ${toPrintable(answer)}`]),
      ...(error === null ? [] : [`error: ${error.code}: ${toOneLine(error.message)}`]),
      ...(input_request === null ? [] : ['question:', ...formatQuestion(input_request)]),
    ]
    return { value: run, text: lines.join('\n') }
  }

/** `mason runs logs`: the actions of the run's turn. */
export const printActions =
  (id: string): RunsCommand =>
  async ({ get }) => {
    const { turn } = await get<RunView>(toPath(id))
    const { action_history } = await get<RuntimeState>(toPath(id, '/state'))
    const actions = action_history[turn - 1] ?? []
    const rows = actions.map((action) => [String(action.id), action.node, action.summary])
    return {
      value: { actions },
      text: rows.length === 0 ? 'no actions yet' : formatTable([['ACTION', 'NODE', 'SUMMARY'], ...rows]),
    }
  }

/**
 * `mason runs answer`: options by their text or number, other answers as the schema of the question wants them. A secret answer is
 * never an argument, which other users could see.
 */
export const sendAnswer =
  (id: string, argument: string | undefined): RunsCommand =>
  async ({ get, post }) => {
    const { input_request, status } = await get<RunView>(toPath(id))
    if (!input_request)
      throw new MasonError('not_found', `run "${id}" is ${status} and has no open question`, {
        remedy: 'mason runs list --status input_required lists those that have one',
      })
    const { secret = false } = input_request
    if (secret && argument !== undefined)
      throw new UsageError(
        'the answer to this question is a secret',
        'leave it out of the command: it is asked for and not shown, or read from stdin',
      )
    const text = secret ? await readHidden('answer', 'stopped; the question is open') : (argument ?? '')
    const answer = parseAnswer(text, input_request)
    if (answer === undefined)
      throw new UsageError(
        `the answer does not fit the question:\n${formatQuestion(input_request).join('\n')}`,
      )
    const run = await post<RunView>(toPath(id, '/input'), { request_id: input_request.id, answer })
    return { value: run, text: `${id} is answered and goes on` }
  }

/** `mason runs cancel`. */
export const sendCancel =
  (id: string, reason: string | undefined): RunsCommand =>
  async ({ post }) => {
    const run = await post<RunView>(toPath(id, '/cancel'), { ...(reason !== undefined && { reason }) })
    return { value: run, text: `${id} is ${run.status}` }
  }

/** `mason runs retry`. */
export const sendRetry =
  (id: string): RunsCommand =>
  async ({ post }) => {
    const run = await post<{ id: string; turn: number }>(toPath(id, '/retry'))
    return { value: run, text: `${run.id} repeats ${id} as turn ${run.turn}` }
  }
