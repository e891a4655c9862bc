import { findDraft } from '../context/context.ts'
import { readResultText } from '../context/result-text.ts'
import { defineNode } from '../graph/definitions.ts'
import { listAnsweredCalls } from '../state/calls.ts'
import { describeLimit, type Outcome, summarizeOutcome, toEndResult } from '../state/outcome.ts'
import type { RuntimeState } from '../state/runtime-state.ts'
import { cutText } from '../state/text/cut-text.ts'
import { readTextLanguage } from '../state/text/text-language.ts'
import { listOpenTodos } from '../state/todos.ts'
import { currentTurn, turnActions, turnTodos } from '../state/turn.ts'

/** Closes the run: writes down how it ended and the final answer, with what there is when a limit cut it short. */
export default defineNode({
  name: 'end',
  description: 'Closes the run and writes down how it ended',
  reads: ['prompts', 'action_history', 'output_structure', 'todos'],
  writes: ['chat_history'],
  next: [],
  async run(state, { checkpoint, outcome, ongoing }) {
    const answer = outcome.status === 'completed' ? chooseAnswer(state, outcome) : null
    return checkpoint(
      {
        summary: summarizeOutcome(outcome, ongoing),
        result: toEndResult(outcome, listOpenTodos(turnTodos(state)), ongoing),
        context:
          answer === null ? null : { type: 'text', content: answer, important: true, usage_type: 'output' },
        relevance: answer === null ? 0 : 1,
        next: [],
      },
      answer === null
        ? {}
        : { chat_history: [{ role: 'assistant', content: answer, turn: currentTurn(state) }] },
    )
  },
})

type EndState = Pick<RuntimeState, 'prompts' | 'action_history' | 'output_structure'>

const chooseAnswer = (state: EndState, outcome: Outcome): string => {
  const written = turnActions(state).findLast((action) => action.context?.usage_type === 'output')?.result
    .answer
  if (typeof written === 'string') return written
  if (state.output_structure.length > 0)
    return JSON.stringify(Object.fromEntries(state.output_structure.map(({ id, content }) => [id, content])))
  return findDraft(state) ?? summarizeResults(state, outcome)
}

/** By rule and without a model: what was found before a limit was reached, the most relevant first. */
const summarizeResults = (state: EndState, outcome: Outcome): string => {
  const found = listAnsweredCalls(turnActions(state))
    .filter(({ action }) => action.result.is_error !== true)
    .toSorted((a, b) => b.action.relevance - a.action.relevance || b.action.id - a.action.id)
    .slice(0, 10)
    .map(({ action }) => `- ${cutText(readResultText(action), 500)}`)
  const language = readTextLanguage(state.prompts[currentTurn(state) - 1] ?? '')
  const why = describeLimit(outcome.reason, language)
  if (language === 'zh')
    return `这不是完整的回答：${why}。${found.length === 0 ? '目前还没有找到任何结果。' : `目前找到的内容：\n${found.join('\n')}`}`
  return found.length === 0
    ? `This is not a full answer: ${why}. Nothing was found yet.`
    : `This is not a full answer: ${why}. What was found so far:\n${found.join('\n')}`
}
