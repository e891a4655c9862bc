import type { ModelMessage, ToolCallRequest } from '../../src/state/ports/model-messages.ts'
import type { ModelReply, Models } from '../../src/state/ports/models.ts'
import { unfenced } from '../../src/state/provenance.ts'
import { requestIn } from '../fleet/job.ts'
import { answerOf, callsOf, scriptIn } from './job.ts'

/** Models in process that play the script in a run's prompt: the calls of the next round, then what they brought. */
export const scriptModels = (ledgerUrl: string): Models => ({
  async call({ role, messages }): Promise<ModelReply> {
    const { text, calls } =
      role === 'planner' ? planned(messages, ledgerUrl) : { text: judged(messages), calls: [] }
    return {
      text,
      reasoning: '',
      tool_calls: calls,
      finish: calls.length > 0 ? 'tool_calls' : 'stop',
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      model: 'script',
    }
  },
  hasModel: () => true,
  describe: () => ({ name: 'script', capabilities: ['rules-only'], base_url: null }),
})

/** What a reflection thinks: an error is a gap. */
const judged = (messages: readonly ModelMessage[]): string =>
  messages.some(({ content }) => content.includes('the ledger is shut'))
    ? '{"is_sufficient":false,"knowledge_gap":"the ledger is shut"}'
    : '{"is_sufficient":true}'

/** A task that is retried later: the run waits for that in the queue. */
const todos = [{ id: 'a', task: 'look at the ledger', suggested_tools: ['ledger_stumble', 'ledger_look'] }]

const planned = (
  messages: readonly ModelMessage[],
  ledgerUrl: string,
): { text: string; calls: ToolCallRequest[] } => {
  const script = scriptIn(requestIn(messages))
  const results = messages.flatMap((message) => (message.role === 'tool' ? [message] : []))
  const rounds = new Set(results.map(({ tool_call_id }) => tool_call_id.split('.')[1])).size
  const calls = callsOf(script, rounds, ledgerUrl)
  if (calls.length === 0)
    return {
      text: answerOf(
        script.name,
        results.map(({ content }) => unfenced(content)),
      ),
      calls: [],
    }
  const made = calls.map(({ id, tool, args }) => ({ id, name: tool, arguments: JSON.stringify(args) }))
  const plan = { id: 'plan', name: 'update_todos', arguments: JSON.stringify({ todos }) }
  return { text: '', calls: calls.some(({ kind }) => kind === 'stumble') ? [plan, ...made] : made }
}
