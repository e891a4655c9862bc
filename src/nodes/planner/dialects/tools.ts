import type { z } from 'zod'
import { partShares } from '../../../context/budget.ts'
import { compareRanks, type Rank, rankAction } from '../../../context/relevance-rank.ts'
import { renderResultText, renderStub } from '../../../context/result-text.ts'
import type { PlanRound } from '../../../context/rounds.ts'
import { part, promptText, titles } from '../../../context/sections.ts'
import type { AnyTool } from '../../../graph/definitions.ts'
import { explainNotRun } from '../../../state/calls.ts'
import { memoizeByObject } from '../../../state/memoize.ts'
import { toModelSchema } from '../../../state/model-schema.ts'
import type { ModelMessage, ModelTool, Reasoning } from '../../../state/ports/model-messages.ts'
import type { ModelReply } from '../../../state/ports/models.ts'
import {
  type DataFence,
  dataRule,
  derivedLabel,
  modelWords,
  operatorWords,
  ownText,
  type PromptText,
  readActionLabel,
} from '../../../state/provenance.ts'
import { cutText } from '../../../state/text/cut-text.ts'
import { estimateTokens } from '../../../state/text/tokens.ts'
import type { ReadonlyAction } from '../../../state/turn.ts'
import type { Dialect, ReplyRefusal } from './dialect.ts'
import {
  type CallError,
  createFinishSchema,
  finishTool,
  interpretReply,
  maxError,
  toPlanTool,
} from './interpret.ts'
import { aroundTokens, type ResultMessage, type RoundMessages, type RoundOptions } from './round-messages.ts'

/** What holds for a planner in every dialect. */
export const plannerRules = ownText`Rules:
- For anything that takes more than one step, keep a plan with update_todos: small tasks with dependencies, in the same reply as the first calls.
- Your first reply sets style and structure where asked for.
- A task is done only once you name it: by update_todos beside your next calls, or in finish.
- Rely on what the tools returned, not on memory; say where a figure comes from. Compute with tools rather than in your head.
- ${dataRule}
- Where a goal and the request differ, the request holds.
- Read what is marked as cut or left out with read_result, where that tool is there.
- If a search finds nothing, try other words or read where it should be; then say that it was not found. Never fill the gap from memory.
- Do not repeat a call that was answered. If a call fails, change it or choose another way.
- If something essential is missing and only a person can know it, ask with ask_user.
- Answer in the language of the request, and follow the output style where one is given.`

/** The planner's standing instructions: the same for every run, so that prompt caches hold. */
export const plannerInstructions = ownText`You are the planner of an agent. You decide the next step for the request of a user; tools do the work.

Each turn, do exactly one of these:
- Call tools. Independent calls go out together in one reply. Beside the calls, say in one sentence what you are doing and why.
- Finish: reply with the complete answer for the user as plain text and no calls, or call finish. It is passed on as it stands.

${plannerRules}`

/** A tool as the model is offered it, and the tokens it takes beside the prompt; made once for each. */
const offerTool = memoizeByObject(
  ({ name, description, input }: Pick<AnyTool, 'name' | 'description' | 'input'>) => {
    const parameters = toModelSchema(input as z.ZodType, 'input')
    const tokens = estimateTokens(name + description + JSON.stringify(parameters))
    return { tool: { name, description, parameters } satisfies ModelTool, tokens }
  },
)

const offerFinish = memoizeByObject((outputs: readonly AnyTool[]) =>
  offerTool({ name: finishTool, description: 'Ends the work.', input: createFinishSchema(outputs) }),
)

const renderRound = (
  { plan, calls, stoppedBy, reflections }: PlanRound,
  { budget, canOpen, fence, largeTexts }: RoundOptions,
): RoundMessages => {
  const maxTokens = Math.floor(budget * Math.min(partShares.result, partShares.step / calls.length))
  const decision: ModelMessage = {
    role: 'assistant',
    content: fence(plan.preparation, derivedLabel),
    tool_calls: calls.map(({ call: { id, tool, args } }) => toToolCall(id, tool, JSON.stringify(args))),
    ...readReasoning(plan),
  }
  const missing = stoppedBy === null ? noResult : operatorWords(explainNotRun(stoppedBy))
  const results = calls.map(({ call, answer }) =>
    answer
      ? renderResult(
          call.id,
          fence(
            renderResultText(answer, { maxTokens, canOpen, large: largeTexts?.get(answer) }) || '[no text]',
            readActionLabel(answer),
          ),
          fence(renderStub(answer, canOpen), readActionLabel(answer)),
          rankAction(answer),
        )
      : renderResult(call.id, missing, missing, {
          important: true,
          relevance: 1,
          recency: plan.id,
        }),
  )
  const notes = reflections.flatMap((action) => renderGap(action, fence))
  const texts = [
    decision.content,
    decision.reasoning?.text ?? '',
    ...(decision.tool_calls ?? []).map((call) => call.name + call.arguments),
  ]
  const tokens = [...texts, ...notes.map(({ content }) => content)].reduce(
    (sum, text) => sum + estimateTokens(text) + aroundTokens,
    0,
  )
  const [rank = { important: false, relevance: 0, recency: 0 }] = results
    .map((one) => one.rank)
    .toSorted(compareRanks)
  return { plan: decision, results, notes, tokens, rank }
}

/** What was thought before these calls; a vendor that thinks between calls wants it back for as long as the turn lasts. */
const readReasoning = ({
  result: { reasoning, reasoned_by },
}: ReadonlyAction): { reasoning?: Reasoning<PromptText> } =>
  typeof reasoning === 'string' && typeof reasoned_by === 'string'
    ? { reasoning: { text: modelWords(reasoning), by: reasoned_by } }
    : {}

const toToolCall = (id: string, name: string, args: string) => ({
  id,
  name: modelWords(name),
  arguments: modelWords(args),
})

const noResult = ownText`[no result]`

const renderResult = (
  tool_call_id: string,
  text: PromptText,
  short: PromptText,
  rank: Rank,
): ResultMessage => ({
  message: { role: 'tool', tool_call_id, content: text },
  tokens: estimateTokens(text) + aroundTokens,
  stub: { role: 'tool', tool_call_id, content: short },
  stubTokens: estimateTokens(short) + aroundTokens,
  rank,
})

/** Only what a plan can use: a gap that was found. Silence means that the results will do. */
const renderGap = ({ result }: ReadonlyAction, fence: DataFence): ModelMessage[] => {
  if (result.is_sufficient !== false || typeof result.knowledge_gap !== 'string' || !result.knowledge_gap)
    return []
  const queries = Array.isArray(result.follow_up_queries)
    ? result.follow_up_queries.map((query) => `- ${String(query)}`)
    : []
  const gap = fence([result.knowledge_gap, ...queries].join('\n'), derivedLabel)
  return [
    {
      role: 'user',
      content: promptText([part(titles.reflection, ownText`Still missing:\n${gap}`, 'agent')]),
    },
  ]
}

/** A longer reply that is refused, in characters, does not go back to the model; what was wrong with it does. */
export const maxReturned = 200_000

const notRun = ownText`Not run: another call of the same reply was refused.`
/** What a reply that did nothing but plan is answered with. */
export const planned = ownText`The plan is updated. Go on: call tools or finish.`

const renderRefusal = ({ reply, read, errors, fence }: ReplyRefusal): ModelMessage[] => {
  if (errors.length === 0) return answerCalls(reply, [], planned, fence)
  const text = fence(errors.map((error) => `- ${error}`).join('\n'), derivedLabel)
  return [
    ...answerCalls(reply, read.errors, notRun, fence),
    { role: 'user', content: promptText([part(titles.correction, text, 'agent')]) },
  ]
}

/** The reply as it was, each of its calls answered, as the chat format demands; an empty reply leaves nothing. */
const answerCalls = (
  reply: ModelReply,
  errors: readonly CallError[],
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
      tool_calls: tool_calls.map((call) => toToolCall(call.id, call.name, call.arguments)),
      ...(reasoning && {
        reasoning: { text: modelWords(reasoning), by: reply.by ?? reply.model },
      }),
    },
    ...tool_calls.map((call): ModelMessage => {
      const found = errors.find((candidate) => candidate.call === call)
      const content = found
        ? ownText`Refused:\n${fence(cutText(found.error, maxError), derivedLabel)}`
        : otherwise
      return { role: 'tool', tool_call_id: call.id, content }
    }),
  ]
}

const describeReply = ({ text, tool_calls }: ModelReply): string =>
  [text, ...tool_calls.map((call) => `${call.name}(${call.arguments})`)]
    .filter((line) => line !== '')
    .join('\n')

/** Calls by the protocol of the vendor. */
export const toolsDialect: Dialect = {
  name: 'tools',
  buildRequest({ tools, outputs, scenarios }) {
    const offered = [...[...tools, toPlanTool(scenarios)].map(offerTool), offerFinish(outputs)]
    return {
      instructions: plannerInstructions,
      tools: offered.map(({ tool }) => tool),
      tokens: offered.reduce((sum, { tokens }) => sum + tokens, 0),
    }
  },
  renderRound,
  parseReply: (reply, known) => ({
    ...interpretReply(reply, known),
    ...(reply.raw !== undefined && { wrote: reply.raw }),
  }),
  renderRefusal: (refusal) => {
    const messages = renderRefusal(refusal)
    const put_back = messages.flatMap(({ role, content }) => (role === 'assistant' ? [] : [content]))
    return { messages, exchange: { wrote: describeReply(refusal.reply), put_back: put_back.join('\n') } }
  },
}
