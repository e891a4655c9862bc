import { promptText, titles } from '../../context/sections.ts'
import type { Json } from '../../state/runtime-state.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { readArithmetic } from './arithmetic.ts'
import { fillOutput, readForm } from './output.ts'
import { plan } from './planner.ts'
import { splitQuestions } from './questions.ts'
import { type OfflineReply, type OfflineRequest, partText, promptOf } from './request.ts'
import { readFiles } from './tables.ts'
import { toNativeRequest, writeReply } from './written.ts'

/** The roles around the planner: values for the properties of their answers. */

/** What a request is about, in one line. */
const understand = (request: OfflineRequest): Record<string, Json> => {
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
const reflect = (request: OfflineRequest): Record<string, Json> => {
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

/** Values as an answer of a schema: those of its properties; what is not known is null. */
const asJson = (values: Record<string, Json>, { schema }: OfflineRequest): OfflineReply => {
  const names = Object.keys(schema?.properties ?? values)
  return {
    text: JSON.stringify(Object.fromEntries(names.map((name) => [name, values[name] ?? null]))),
    tool_calls: [],
  }
}

/**
 * The model that serves without a key: rules over the parts of a prompt. It counts, adds up, filters, groups and ranks
 * through query_table, does sums through calculate, searches texts through search_file_content, recalls what is
 * remembered of the user, and for all else says how to set a key. Pure: the same request gives the same reply.
 */
export const answerOffline = (request: OfflineRequest): OfflineReply => {
  switch (request.role) {
    case 'understand':
      return asJson(understand(request), request)
    case 'reflection':
      return asJson(reflect(request), request)
    case 'distill':
    case 'compaction':
      // rules of their own sum up and learn better than these could
      return asJson({ summary: cutText(promptText(request.parts ?? []), 2000) }, request)
    case 'output':
      return asJson(fillOutput(request), request)
    default: {
      const reply = plan(request)
      const isText = request.schema === undefined || reply.tool_calls.length > 0
      return isText ? reply : asJson({ answer: reply.text }, request)
    }
  }
}

/** The same for a planner whose calls are text in the language of the dialogue: the same decisions, written out. */
export const answerInWriting = (request: OfflineRequest): OfflineReply =>
  writeReply(answerOffline(toNativeRequest(request)), request)
