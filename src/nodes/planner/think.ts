import { part, promptText, titles } from '../../context/sections.ts'
import { numberAttempts } from '../../graph/text-streaming.ts'
import { MasonError } from '../../state/errors.ts'
import type { ModelMessage, ModelTool } from '../../state/ports/model-messages.ts'
import type { ModelReply, Models } from '../../state/ports/models.ts'
import { type DataFence, derivedLabel, modelWords, ownText, type PromptText } from '../../state/provenance.ts'
import type { Usage } from '../../state/runtime-state.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { addUsage, noUsage } from '../../state/token-usage.ts'
import type { CallError, Interpretation } from './interpret.ts'
import type { Prompt } from './messages.ts'

/** How often an invalid reply goes back to the model within one action. */
const maxCorrections = 3
/** How often the model may do nothing but change its plan within one action. */
const maxPlanChanges = 3

/** What is said of refused calls: of so many, in so many characters each. */
const maxErrors = 20
const maxError = 1000
/** A longer reply that is refused, in characters, does not go back to the model; what was wrong with it does. */
const maxReturned = 200_000

/** A usable reply of the planner, and what it took to get it. */
export type PlannerDecision = {
  reply: ModelReply
  interpretation: Interpretation
  usage: Usage
  /** What was refused on the way, and why. */
  corrections: { reply: string; faults: string[] }[]
}

type DecisionRequest = {
  models: Models
  prompt: Prompt
  tools: ModelTool[]
  model: string | undefined
  onText: (text: string, attempt: number) => void
  /** Reads a reply and applies its changes of the plan; errors of the plan are errors of the reply. */
  read(reply: ModelReply): Interpretation
  /** Whether the plan, as the replies so far have left it, has tasks that are not done. */
  isPlanOpen(): boolean
}

/**
 * Asks the planner's model until its reply can be used, three corrections at the most. Throws `bad_tool_call` with the
 * transcript of what was refused and the tokens of all replies in its detail.
 */
export const requestDecision = async (
  ask: DecisionRequest,
  signal: AbortSignal,
): Promise<PlannerDecision> => {
  const { fence, messages: asked } = ask.prompt
  const messages = [...asked]
  const corrections: PlannerDecision['corrections'] = []
  const onText = numberAttempts(ask.onText)
  let usage = noUsage
  let planChanges = 0
  for (;;) {
    const reply = await callModel(ask, messages, onText(), usage, signal)
    usage = addUsage(usage, reply.usage)
    const interpretation = ask.read(reply)
    const faults = findReplyErrors(reply, interpretation)
    if (faults.length > 0) {
      corrections.push({ reply: toTranscript(reply), faults })
      if (corrections.length > maxCorrections)
        throw tooManyCorrectionsError(faults.join('; '), usage, corrections)
      messages.push(...answerCalls(reply, interpretation.errors, notRun, fence))
      const text = fence(linesOf(faults), derivedLabel)
      messages.push({ role: 'user', content: promptText([part(titles.correction, text, 'agent')]) })
    } else if (isOnlyPlanning(reply, interpretation, ask.isPlanOpen()) && ++planChanges <= maxPlanChanges)
      messages.push(...answerCalls(reply, [], planned, fence))
    else if (reply.text.trim() !== '' || !isIdle(interpretation))
      return { reply, interpretation, usage, corrections }
    else throw tooManyCorrectionsError('the model only keeps changing its plan', usage, corrections)
  }
}

const notRun = ownText`Not run: another call of the same reply was refused.`
const planned = ownText`The plan is updated. Go on: call tools or finish.`

const linesOf = (faults: readonly string[]): string => faults.map((fault) => `- ${fault}`).join('\n')

const isIdle = (read: Interpretation): boolean => read.calls.length === 0 && !read.output

const findReplyErrors = (reply: ModelReply, read: Interpretation): string[] => {
  const empty = isIdle(read) && read.todos.length === 0 && reply.text.trim() === ''
  if (empty && read.errors.length === 0) return ['the reply was empty: call a tool, or answer as text']
  const errors = read.errors.slice(0, maxErrors).map(({ error }) => cutText(error, maxError))
  const more = read.errors.length - errors.length
  return more > 0 ? [...errors, `${more} more calls were refused`] : errors
}

/** A reply that did nothing but plan. Text beside an open plan announces work; it is not the answer yet. */
const isOnlyPlanning = (reply: ModelReply, read: Interpretation, isOpen: boolean): boolean =>
  isIdle(read) && read.todos.length > 0 && (isOpen || reply.text.trim() === '')

/** A model that fails after others answered: the tokens of the whole action stay known. */
const callModel = async (
  ask: DecisionRequest,
  messages: ModelMessage[],
  onText: DecisionRequest['onText'],
  spent: Usage,
  signal: AbortSignal,
): Promise<ModelReply> => {
  try {
    return await ask.models.call(
      {
        role: 'planner',
        messages: [...messages],
        parts: ask.prompt.parts,
        tools: ask.tools,
        onText,
        ...(ask.model && { model: ask.model }),
      },
      signal,
    )
  } catch (error) {
    if (!(error instanceof MasonError)) throw error
    const detail = error.detail as { usage?: Usage } | undefined
    throw new MasonError(error.code, error.message, {
      ...(error.remedy && { remedy: error.remedy }),
      cause: error,
      detail: { ...detail, usage: addUsage(spent, detail?.usage ?? noUsage) },
    })
  }
}

const uselessCalls = `the model's calls could not be used, also after ${maxCorrections} corrections`

const tooManyCorrectionsError = (
  why: string,
  usage: Usage,
  transcript: PlannerDecision['corrections'],
): MasonError =>
  new MasonError('bad_tool_call', `${uselessCalls}: ${why}`, {
    remedy: 'see the transcript in the planner action; another model may serve better',
    detail: { transcript, usage },
  })

const toTranscript = ({ text, tool_calls }: ModelReply): string =>
  [text, ...tool_calls.map((call) => `${call.name}(${call.arguments})`)]
    .filter((line) => line !== '')
    .join('\n')
    .slice(0, 4000)

/** The reply as it was, each of its calls answered, as the chat format demands; an empty reply leaves nothing. */
const answerCalls = (
  reply: ModelReply,
  faults: readonly CallError[],
  otherwise: PromptText,
  fence: DataFence,
): ModelMessage[] => {
  const { text, reasoning, tool_calls } = reply
  const length = tool_calls.reduce((sum, call) => sum + call.name.length + call.arguments.length, 0)
  if (text.length + reasoning.length + length > maxReturned) return []
  const content = fence(text.trim(), derivedLabel)
  if (tool_calls.length === 0) return content === '' ? [] : [{ role: 'assistant', content }]
  return [
    {
      role: 'assistant',
      content,
      tool_calls: tool_calls.map((call) => ({
        id: call.id,
        name: modelWords(call.name),
        arguments: modelWords(call.arguments),
      })),
      ...(reasoning && {
        reasoning: { text: modelWords(reasoning), by: reply.by ?? reply.model },
      }),
    },
    ...tool_calls.map((call): ModelMessage => {
      const fault = faults.find((candidate) => candidate.call === call)
      const content = fault
        ? ownText`Refused:\n${fence(cutText(fault.error, maxError), derivedLabel)}`
        : otherwise
      return { role: 'tool', tool_call_id: call.id, content }
    }),
  ]
}
