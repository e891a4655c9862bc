import { NodeFailureError } from '../../graph/node-failure.ts'
import { numberAttempts, streamAnew } from '../../graph/text-streaming.ts'
import { isMasonError, MasonError } from '../../state/errors.ts'
import type { ModelMessage } from '../../state/ports/model-messages.ts'
import type { DialectName, ModelReply, Models } from '../../state/ports/models.ts'
import type { Usage } from '../../state/runtime-state.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { addUsage, noUsage, readSpentUsage } from '../../state/token-usage.ts'
import type { Dialect, DialectRequest } from './dialects/dialect.ts'
import { type Interpretation, maxError } from './dialects/interpret.ts'
import type { ReplyExchange } from './dialects/written-plans.ts'
import type { Prompt } from './messages.ts'

/** How often an invalid reply goes back to the model within one action. */
const maxCorrections = 3
/** How often the model may do nothing but change its plan within one action. */
const maxPlanChanges = 3

/** How many refused calls something is said of. */
const maxErrors = 20

/** A usable reply of the planner, and what it took to get it. */
export type PlannerDecision = {
  reply: ModelReply
  dialect: DialectName
  interpretation: Interpretation
  usage: Usage
  /** What was refused on the way or only planned, and what was put back, whole. */
  exchange: readonly ReplyExchange[]
  /** What closed the prompt, where it was new. */
  closing: string
}

/** How a model is asked in one dialect. */
export type DialectPrompt = { dialect: Dialect; prompt: Prompt; asked: DialectRequest }

type DecisionRequest = {
  models: Models
  /** The dialects of the models that may answer, in the order in which they are asked. */
  dialects: readonly DialectName[]
  open(dialect: DialectName): Promise<DialectPrompt>
  model: string | undefined
  onText: (text: string, attempt: number) => void
  /** Reads a reply and applies its changes of the plan; errors of the plan are errors of the reply. */
  read(dialect: Dialect, reply: ModelReply): Interpretation
  /** Whether the plan, as the replies so far have left it, has tasks that are not done. */
  isPlanOpen(): boolean
}

/**
 * Asks the planner's models until a reply can be used, three corrections at the most: those of one dialect, and where they all
 * fail those of the next one. Throws `bad_tool_call`, with all that was refused in its result, and the tokens of all replies in the
 * detail of any error.
 */
export const requestDecision = async (
  ask: DecisionRequest,
  signal: AbortSignal,
): Promise<PlannerDecision> => {
  let exchange: ReplyExchange[] = []
  const onText = numberAttempts(ask.onText)
  let usage = noUsage
  let refused = 0
  let planChanges = 0
  const decide = async (name: DialectName, hasOthers: boolean): Promise<PlannerDecision> => {
    const { dialect, prompt, asked } = await ask.open(name)
    const messages = [...prompt.messages]
    for (;;) {
      const stream = onText()
      const write = dialect.openStream ? streamAnew(dialect.openStream, stream) : stream
      const request = { ...asked, dialect: name, hasOthers, prompt, messages, onText: write }
      const reply = await callModel(ask, request, usage, signal)
      usage = addUsage(usage, reply.usage)
      const interpretation = ask.read(dialect, reply)
      const errors = findReplyErrors(interpretation)
      const isChoice = choosesScenario(interpretation)
      const isPlanning = errors.length === 0 && !isChoice && isOnlyPlanning(interpretation, ask.isPlanOpen())
      if (errors.length === 0 && !(isPlanning && planChanges < maxPlanChanges)) {
        if (isChoice || interpretation.text.trim() !== '' || !isIdle(interpretation))
          return { reply, dialect: name, interpretation, usage, exchange, closing: prompt.closing }
        throw createUselessError('the model only keeps changing its plan', usage, name, exchange)
      }
      const refusal = dialect.renderRefusal({ reply, read: interpretation, errors, fence: prompt.fence })
      exchange.push(refusal.exchange)
      messages.push(...refusal.messages)
      if (isPlanning) planChanges++
      else if (++refused > maxCorrections) throw createUselessError(errors.join('; '), usage, name, exchange)
    }
  }
  const [first = 'tools', second] = ask.dialects
  if (second === undefined) return decide(first, false)
  try {
    return await decide(first, true)
  } catch (error) {
    if (!isModelFailure(error)) throw error
    usage = readSpentUsage(error)
    exchange = exchange.map((one) => ({ ...one, dialect: first }))
    return decide(second, false)
  }
}

/** Whether other models may answer: not where the request itself was refused. */
const isModelFailure = (error: unknown): error is MasonError =>
  isMasonError(error) &&
  (error.code === 'no_model_available' || error.code.startsWith('model_')) &&
  error.code !== 'model_content_filtered' &&
  (error.code !== 'model_bad_request' || (error.detail as { status?: number } | undefined)?.status === 404)

const isIdle = (read: Interpretation): boolean => read.calls.length === 0 && !read.output
/** Whether the reply chooses a scenario: then the model is asked again, in that scenario. */
const choosesScenario = ({ proposal }: Interpretation): boolean => proposal.scenario !== undefined

const findReplyErrors = (read: Interpretation): string[] => {
  const empty = isIdle(read) && read.todos.length === 0 && read.text.trim() === ''
  if (empty && read.errors.length === 0) return ['the reply was empty: call a tool, or answer as text']
  const errors = read.errors.slice(0, maxErrors).map(({ error }) => cutText(error, maxError))
  const more = read.errors.length - errors.length
  return more > 0 ? [...errors, `${more} more calls were refused`] : errors
}

/** A reply that did nothing but plan. Text beside an open plan announces work; it is not the answer yet. */
const isOnlyPlanning = (read: Interpretation, isOpen: boolean): boolean =>
  isIdle(read) && read.todos.length > 0 && (isOpen || read.text.trim() === '')

type ModelAsk = DialectRequest & {
  prompt: Prompt
  messages: readonly ModelMessage[]
  dialect: DialectName
  hasOthers: boolean
  onText: (text: string, attempt: number) => void
}

/** A model that fails after others answered: the tokens of the whole action stay known. */
const callModel = async (
  { models, model }: DecisionRequest,
  { prompt, messages, tools = [], end, dialect, hasOthers, onText }: ModelAsk,
  spent: Usage,
  signal: AbortSignal,
): Promise<ModelReply> => {
  try {
    return await models.call(
      {
        role: 'planner',
        messages: [...messages],
        parts: prompt.parts,
        tools,
        dialect,
        ...(end && { end }),
        ...(hasOthers && { hasOthers }),
        onText,
        ...(model && { model }),
      },
      signal,
    )
  } catch (error) {
    if (!(error instanceof MasonError)) throw error
    throw new MasonError(error.code, error.message, {
      ...(error.remedy && { remedy: error.remedy }),
      cause: error,
      detail: { ...(error.detail as object | undefined), usage: addUsage(spent, readSpentUsage(error)) },
    })
  }
}

const uselessCalls = `the model's calls could not be used, also after ${maxCorrections} corrections`

const createUselessError = (
  why: string,
  usage: Usage,
  dialect: DialectName,
  exchange: readonly ReplyExchange[],
): MasonError =>
  new NodeFailureError(
    'bad_tool_call',
    `${uselessCalls}: ${why}`,
    {
      remedy: 'see the exchange in the planner action; another model may serve better',
      detail: { corrections: exchange.length, usage },
    },
    { dialect, exchange: [...exchange] },
  )
