import { answerQuestion } from './answer-question.ts'
import { readArithmetic } from './arithmetic.ts'
import { candidateFiles, namedFiles, withoutFileNames } from './choose-table.ts'
import type { Desk, Step } from './desk.ts'
import { aboutMe, say } from './frames.ts'
import { type Gathered, gather } from './gather.ts'
import { inlineTable } from './inline.ts'
import { type Asked, readIntent } from './intent.ts'
import { openLedger } from './ledger.ts'
import { pieceLines } from './piece-values.ts'
import { planTodos } from './plan-todos.ts'
import { splitQuestions } from './questions.ts'
import type { Call, Piece, Request } from './read-request.ts'
import { type Language, languageOf, shorten } from './text.ts'

/** The planner: reads the request and what came back so far, and answers with the next calls or the final text. */

export type Reply = { text: string; tool_calls: readonly Call[] }

const mostCallsAtOnce = 16
const mostCalls = 200

type Item = {
  question: string
  asked: Asked
  files: readonly string[]
  previous: Asked | null
  piece: Piece | null
}

const lastUserQuestion = (request: Request): Asked | null => {
  const said = request.conversation.filter(
    ({ role, text }) => role === 'user' && text.trim() !== request.prompt,
  )
  const question = splitQuestions(said.at(-1)?.text ?? '').at(-1)
  return question ? readIntent(withoutFileNames(question, request.files)) : null
}

/** The file talked about last, for follow-ups that name none. */
const lastFiles = (request: Request): string[] => {
  for (const turn of [...request.conversation].reverse()) {
    const named = namedFiles(turn.text, request.files)
    if (named.length > 0) return named
  }
  return []
}

const readItems = (request: Request, prompt: string): Item[] => {
  let previous = lastUserQuestion(request)
  const inPrompt = namedFiles(prompt, request.files)
  const items = splitQuestions(prompt).map((question): Item => {
    const bare = withoutFileNames(question, request.files)
    const asked = readIntent(bare || question)
    const own = namedFiles(question, request.files)
    const named =
      own.length > 0 ? own : inPrompt.length > 0 ? inPrompt : asked.elliptical ? lastFiles(request) : []
    const item = {
      question,
      asked,
      files: candidateFiles(asked, request.files, named),
      previous,
      piece: null,
    }
    if (readArithmetic(question) === null)
      previous = asked.elliptical && previous ? mergeAsked(previous, asked) : asked
    return item
  })
  const pieces = request.pieces
    .filter(({ expected }) => expected !== '')
    .map((piece): Item => {
      const asked = readIntent(withoutFileNames(piece.expected, request.files))
      return {
        question: piece.expected,
        asked,
        files: candidateFiles(asked, request.files, inPrompt),
        previous: null,
        piece,
      }
    })
  return [...items, ...pieces]
}

/** A chain of follow-ups leans on the words of all before it. */
const mergeAsked = (before: Asked, now: Asked): Asked =>
  now.aggregate === null && now.pick === null && now.manner === 'figure'
    ? { ...before, elliptical: false }
    : now

const openDesk = (request: Request, language: Language, inline: Desk['inline']): Desk => {
  const opened = new Map<string, Gathered>()
  const open = (file: string): Gathered => {
    const known = opened.get(file) ?? gather(request, file, language)
    opened.set(file, known)
    return known
  }
  return {
    request,
    ledger: openLedger(request.made, request.tools.has('calculate')),
    language,
    open,
    inline,
    notes: new Set(),
  }
}

const unique = (calls: readonly Call[]): Call[] => [
  ...new Map(calls.map((call) => [JSON.stringify([call.name, call.args]), call])).values(),
]

const preparation = (steps: readonly Step[], calls: readonly Call[], language: Language): string => {
  const files = [...new Set(calls.filter((c) => c.name === 'read_file').map((c) => String(c.args.file_path)))]
  const patterns = [
    ...new Set(calls.filter((c) => c.name === 'search_file_content').map((c) => String(c.args.pattern))),
  ]
  const sums = calls.filter((call) => call.name === 'calculate').length
  const parts = [
    files.length > 0 && say.reading(language, files.join(say.and(language))),
    patterns.length > 0 &&
      say.searching(
        language,
        patterns.map((p) => p.replace(/^\(\?i\)|\\b/g, '').replaceAll('\\b', '')).join(' | '),
      ),
    sums > 0 && say.calculating(language, sums),
    steps.some((step) => step.kind === 'ask') && say.asking(language),
  ]
  return parts.filter((part) => part !== false).join(' ')
}

const finalText = (items: readonly Item[], steps: readonly Step[], desk: Desk): string => {
  const findings = steps.filter((_, i) => items[i]?.piece === null).map(({ finding }) => finding)
  const said = [...new Set(findings.map(({ text }) => text))]
  const plainTexts = said.length > 1 ? said.filter((text) => text !== say.toldOfYou(desk.language)) : said
  const answered = findings.some(({ empty }) => !empty)
  const about = aboutMe[desk.language]
  const texts = answered
    ? plainTexts
    : plainTexts.filter((text, i) => text !== about || i === plainTexts.indexOf(about))
  const notes = [...desk.notes, ...(desk.ledger.unchecked.length > 0 ? [say.unchecked(desk.language)] : [])]
  const pieces = pieceLines(items, steps)
  return [...(texts.length > 0 ? texts : [about]), ...notes, ...pieces].join('\n\n')
}

/** Whether a question comes down to figures, for the plan. */
const needsFigures = ({ asked }: Item): boolean =>
  asked.manner !== 'lines' && asked.manner !== 'list' && asked.manner !== 'describe'

export const plan = (request: Request): Reply => {
  const language = languageOf(request.prompt)
  const { document, rest } = inlineTable(request.prompt, language === 'zh' ? '您的消息' : 'your message')
  const desk = openDesk(request, language, document)
  const items = readItems(request, document ? rest : request.prompt)
  const steps = items.map((item) => answerQuestion(item.asked, item.files, item.previous, desk))
  const asks = steps.flatMap((step, i) => (step.kind === 'ask' && items[i]?.piece === null ? step.calls : []))
  const wanted = unique([
    ...steps.filter(({ kind }) => kind !== 'ask').flatMap(({ calls }) => calls),
    ...desk.ledger.wanted.map((expression): Call => ({ name: 'calculate', args: { expression } })),
  ])
  const calls = (wanted.length > 0 ? wanted : asks.slice(0, 1)).slice(0, mostCallsAtOnce)
  if (calls.length === 0 || request.made.length > mostCalls)
    return { text: finalText(items, steps, desk), tool_calls: [] }
  const first = request.made.length === 0 && !request.hasTodos && request.tools.has('update_todos')
  const reads = calls.some((call) => call.name === 'read_file' || call.name === 'search_file_content')
  const todos = first && reads ? [planTodos(calls, items.some(needsFigures), request.tools, language)] : []
  return { text: shorten(preparation(steps, calls, language), 400), tool_calls: [...todos, ...calls] }
}
