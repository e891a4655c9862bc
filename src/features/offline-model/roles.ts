import { titles } from '../../context/sections.ts'
import type { Json } from '../../state/runtime-state.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { readArithmetic } from './arithmetic.ts'
import { readForm } from './output.ts'
import { splitQuestions } from './questions.ts'
import { type OfflineRequest, partText, promptOf } from './request.ts'
import { readFiles } from './tables.ts'

/** The roles around the planner: values for the properties of their answers. */

/** What a request is about, in one line. */
export const understand = (request: OfflineRequest): Record<string, Json> => {
  const prompt = promptOf(request)
  const form = readForm(request)
  const { tables, texts } = readFiles(request)
  const files = [...new Set([...tables.map(({ file }) => file), ...texts])].join(', ')
  const questions = splitQuestions(prompt).map(({ question }) => cutText(question, 160))
  const list = questions.map((question, at) => `${at + 1}) ${question}`).join(' ')
  const goal = questions.length > 1 ? list : cutText(prompt.replace(/\s+/g, ' '), 300)
  const kind = readArithmetic(prompt) ? 'arithmetic' : files ? 'data_question' : 'open_question'
  return {
    scenario: partText(request, titles.scenario) || kind,
    task_goal: files && !goal.includes(files) ? `${goal} [${files}]` : goal,
    output_style: form.style,
    output_structure: form.pieces.map(({ id, type, expected }) => ({ id, type, expected })),
    start: 'planner',
  }
}

/** Failed calls are the gap; the planner reads all results itself. */
export const reflect = (request: OfflineRequest): Record<string, Json> => {
  // text between marks is data, also where it looks like a heading
  const parts = partText(request, titles.results).split(/^<\/data-\w+>$/m)
  const lines = parts.flatMap((part) => part.split(/^<data-\w+ /m)[0]?.split('\n') ?? [])
  const failed = lines.filter((line) => line.startsWith('## Action ') && line.endsWith(' (error)'))
  return {
    reasoning: failed.length === 0 ? 'All results came without error.' : `${failed.length} calls failed.`,
    is_sufficient: failed.length === 0,
    knowledge_gap: cutText(failed.map((line) => line.slice(3)).join('\n'), 1000),
  }
}
