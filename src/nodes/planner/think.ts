import { MasonError } from '../../state/errors.ts'
import type { ModelMessage, ModelReply, Models, ModelTool } from '../../state/ports.ts'
import type { Usage } from '../../state/runtime-state.ts'
import { addUsage, noUsage } from '../../state/usage.ts'
import type { Fault, Interpretation } from './interpret.ts'

/** How often a reply that does not check goes back to the model within one action. */
const maxCorrections = 3
/** How often the model may do nothing but change its plan within one action. */
const maxPlanChanges = 3

export type Thought = {
  reply: ModelReply
  read: Interpretation
  usage: Usage
  /** What was refused on the way, and why. */
  corrections: { reply: string; faults: string[] }[]
}

/** The last reply could not be used; carries the transcript and the tokens it took. */
export type GaveUp = { error: MasonError; usage: Usage; corrections: Thought['corrections'] }

type Ask = {
  models: Models
  messages: ModelMessage[]
  tools: ModelTool[]
  model: string | undefined
  onText: (text: string, attempt: number) => void
  /** Reads a reply and applies its changes of the plan; faults of the plan are faults of the reply. */
  read(reply: ModelReply): Interpretation
}

/** Asks the planner's model until its reply can be used, three corrections at the most. */
export const think = async (ask: Ask, signal: AbortSignal): Promise<Thought | GaveUp> => {
  const messages = [...ask.messages]
  const corrections: Thought['corrections'] = []
  let usage = noUsage
  let planChanges = 0
  for (;;) {
    const reply = await callModel(ask, messages, usage, signal)
    usage = addUsage(usage, reply.usage)
    const read = ask.read(reply)
    const nothing = read.calls.length === 0 && !read.output
    if (read.faults.length === 0 && nothing && read.todos.length > 0 && reply.text.trim() === '') {
      if (++planChanges > maxPlanChanges)
        return gaveUp('the model only keeps changing its plan', usage, corrections)
      messages.push(...answerCalls(reply, [], 'The plan is updated. Go on: call tools or finish.'))
      continue
    }
    const empty = nothing && read.faults.length === 0 && reply.text.trim() === ''
    if (read.faults.length === 0 && !empty) return { reply, read, usage, corrections }

    const faults = empty
      ? ['the reply was empty: call a tool, or answer as text']
      : read.faults.map(({ fault }) => fault)
    corrections.push({ reply: transcriptOf(reply), faults })
    if (corrections.length > maxCorrections) return gaveUp(faults.join('; '), usage, corrections)
    messages.push(...answerCalls(reply, read.faults, 'Not run: another call of the same reply was refused.'))
    messages.push({
      role: 'user',
      content: `# Correction\n${faults.map((fault) => `- ${fault}`).join('\n')}`,
    })
  }
}

/** A model that fails after others answered: the tokens of the whole action stay known. */
const callModel = async (
  ask: Ask,
  messages: ModelMessage[],
  spent: Usage,
  signal: AbortSignal,
): Promise<ModelReply> => {
  try {
    return await ask.models.call(
      {
        role: 'planner',
        messages,
        tools: ask.tools,
        onText: ask.onText,
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

const gaveUp = (why: string, usage: Usage, corrections: Thought['corrections']): GaveUp => ({
  error: new MasonError(
    'bad_tool_call',
    `the model's calls could not be used, also after ${maxCorrections} corrections: ${why}`,
    {
      remedy: 'see the transcript in the planner action; another model may serve better',
      detail: { transcript: corrections },
    },
  ),
  usage,
  corrections,
})

const transcriptOf = ({ text, tool_calls }: ModelReply): string =>
  [text, ...tool_calls.map((call) => `${call.name}(${call.arguments})`)]
    .filter((line) => line !== '')
    .join('\n')
    .slice(0, 4000)

/** The reply as it was, each of its calls answered, as the chat format demands. */
const answerCalls = (reply: ModelReply, faults: readonly Fault[], otherwise: string): ModelMessage[] => [
  {
    role: 'assistant',
    content: reply.text,
    ...(reply.tool_calls.length > 0 && { tool_calls: reply.tool_calls }),
  },
  ...reply.tool_calls.map((call): ModelMessage => {
    const fault = faults.find((candidate) => candidate.call === call)
    return { role: 'tool', tool_call_id: call.id, content: fault ? `Refused: ${fault.fault}` : otherwise }
  }),
]
