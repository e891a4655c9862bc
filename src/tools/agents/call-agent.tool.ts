import { z } from 'zod'
import { askAgent } from '../../graph/ask-agent.ts'
import { errorDraft, readCallInput, resultDraft } from '../../graph/call-drafts.ts'
import { defineTool } from '../../graph/definitions.ts'
import { MasonError } from '../../state/errors.ts'
import type { AgentReply } from '../../state/ports/agents.ts'

const maxIdChars = 255

/** Calls an agent that an admin has added for the business: docs/a2a.md. */
export default defineTool({
  name: 'call_agent',
  description:
    'Sends a message to another agent and returns its reply. The agent knows nothing of this conversation: say all that it needs. ' +
    'Where the reply asks for something, answer with its task_id.',
  kinds: ['call'],
  provenance: 'agent',
  input: z.strictObject({
    agent: z
      .string()
      .min(1)
      .max(64)
      .describe('The name of the agent. With an unknown name, the result lists them'),
    message: z.string().min(1).max(100_000).describe('What to say to it'),
    task_id: z.string().min(1).max(maxIdChars).optional().describe('The task whose question this answers'),
    context_id: z
      .string()
      .min(1)
      .max(maxIdChars)
      .optional()
      .describe('As an earlier reply named it, to go on with that conversation'),
  }),
  reads: [],
  writes: [],
  needs: ['agents'],
  isAvailable: async ({ agents }) => (await agents.list()).length > 0,
  async run(_state, context) {
    const { agent, message, ...ids } = readCallInput(context)
    const known = await context.agents.list()
    if (!known.some(({ name }) => name === agent))
      throw new MasonError('not_found', `there is no agent "${agent}"`, {
        remedy: `choose one of these: ${known.map(({ name, description }) => `${name} (${description.slice(0, 200)})`).join('; ')}`,
      })
    const reply = await askAgent(context, { agent, parts: [{ text: message }], ...ids })
    const text = toText(reply)
    const summary = `${agent}: ${reply.state}`
    const isError = reply.state === 'failed' || reply.state === 'rejected' || reply.state === 'canceled'
    return context.checkpoint(isError ? errorDraft(summary, text) : resultDraft(summary, text))
  },
})

/** A reply as the model reads it. */
const toText = ({ state, task_id, context_id, texts, data }: AgentReply): string =>
  [
    `State: ${state}${task_id === null ? '' : `, task_id: ${task_id}`}${context_id === null ? '' : `, context_id: ${context_id}`}`,
    ...(state === 'input-required' ? ['The agent asks for something: answer with this task_id.'] : []),
    ...texts,
    ...(data.length > 0 ? [JSON.stringify(data)] : []),
  ].join('\n\n')
