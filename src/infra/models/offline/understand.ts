import type { Json } from '../../../state/runtime-state.ts'
import { readArithmetic } from './arithmetic.ts'
import { fillObject, schemaOf } from './fill-schema.ts'
import { readIntent } from './intent.ts'
import { splitQuestions } from './questions.ts'
import { readRequest } from './read-request.ts'
import { shorten } from './text.ts'

/** Understand: what kind of request it is, said in one line, with the style it names itself. */

const styles: readonly (readonly [RegExp, string])[] = [
  [/\bbullet(?:s| points?| list)?\b|要点|列表形式/i, 'bullet list'],
  [/\b(?:brief(?:ly)?|short(?:ly)?|concise(?:ly)?|in one sentence|one line)\b|简短|简要|一句话/i, 'short'],
  [/\bupper ?case|in capitals\b|大写/i, 'upper case'],
  [/\blower ?case\b|小写/i, 'lower case'],
  [/\b(?:plain text|no markdown|without markdown)\b|纯文本/i, 'plain text'],
]

const styleIn = (prompt: string): string =>
  styles
    .filter(([pattern]) => pattern.test(prompt))
    .map(([, style]) => style)
    .join(', ')

const scenarioOf = (prompt: string, hasFiles: boolean): string => {
  if (readArithmetic(prompt) !== null) return 'arithmetic'
  const { manner } = readIntent(prompt)
  if (manner === 'greeting' || manner === 'writing') return 'open_question'
  if (manner === 'lines' || manner === 'count_lines') return 'text_search'
  if (manner === 'describe') return 'file_overview'
  return hasFiles ? 'data_question' : 'open_question'
}

/** Known properties for whatever schema is asked; unknown ones get their smallest value. */
export const understand = (body: unknown): Record<string, Json> => {
  const request = readRequest(body, 'judge')
  const questions = splitQuestions(request.prompt)
  const scenario =
    request.sections.get('Scenario') || scenarioOf(questions[0] ?? request.prompt, request.files.length > 0)
  const goal =
    questions.length > 1
      ? questions.map((q, i) => `${i + 1}) ${shorten(q, 160)}`).join(' ')
      : shorten(request.prompt.replace(/\s+/g, ' '), 300)
  const files = request.files.map(({ name }) => name).join(', ')
  const known: Record<string, Json> = {
    scenario,
    task_goal: files && !goal.includes(files) ? `${goal} [${files}]` : goal,
    output_style: request.sections.get('Output style') || styleIn(request.prompt),
    output_structure: request.pieces.map(({ id, type, expected }) => ({ id, expected, type })),
    start: 'planner',
    direction: files
      ? `Find what is asked in ${files}, then calculate and answer with the lines it comes from.`
      : 'Answer directly.',
  }
  const schema = schemaOf(body)
  return schema ? fillObject(known, schema, schema) : known
}
