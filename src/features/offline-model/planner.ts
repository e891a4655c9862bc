import { titles } from '../../context/sections.ts'
import type { Json } from '../../state/runtime-state.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { readTextLanguage, type TextLanguage } from '../../state/text/text-language.ts'
import { describeRows, type Finding } from './answers.ts'
import { readArithmetic } from './arithmetic.ts'
import { valuesQuery } from './conditions.ts'
import { isAboutUser, isTelling, recallFact } from './facts.ts'
import { readForm, toDraft } from './output.ts'
import { type AskedQuestion, splitQuestions } from './questions.ts'
import {
  isFailure,
  type OfflineReply,
  type OfflineRequest,
  partText,
  promptOf,
  type ResultOf,
  resultsOf,
  type ToolUse,
  useTool,
} from './request.ts'
import { searchTexts } from './search.ts'
import { readQuestion } from './sql-question.ts'
import { type FileContent, readFiles, readRows, type Table } from './tables.ts'
import { asksFigure, helpText } from './words.ts'

/**
 * One question worked out step by step: it yields the calls that it needs and goes on with their results. The model is
 * asked anew at each step of a run, so a question starts over each time and passes what has been answered already.
 */
type Work = Generator<ToolUse[], Finding | null, string[]>

const mostFiles = 4

/** Tables that a question names, else all: those that do not know its words refuse it. */
const chooseTables = (question: string, tables: readonly Table[]): readonly Table[] => {
  const named = tables.filter(({ file }) => question.includes(file))
  return (named.length > 0 ? named : tables).slice(0, mostFiles)
}

const listColumns = ({ columns }: Table): string => columns.map(({ name }) => name).join(', ')

const query = (sql: string): ToolUse => useTool('query_table', { sql })

/** Looks up which values of the table the question names, then queries what it asks for. */
function* askTable({ question, before }: AskedQuestion, language: TextLanguage, table: Table): Work {
  const failure = (result: string): Finding => ({ text: `${table.file}: ${result}` })
  const values = valuesQuery(`${before} ${question}`.trim(), table)
  const [found = ''] = values ? yield [query(values)] : ['No rows.']
  if (isFailure(found)) return failure(found)
  const named = (readRows(found) ?? []).map(({ field = '', value = '' }) => ({ field, value }))
  const asked = readQuestion(question, table, named, before)
  if (asked === null) return null
  if ('unused' in asked)
    return { text: say[language].refuse(asked.unused, listColumns(table)), isRefused: true }
  const [result = ''] = yield [query(asked.sql)]
  const rows = isFailure(result) ? null : readRows(result)
  return rows ? describeRows(asked, rows, table.file, language) : failure(result)
}

function* calculate(expression: string): Work {
  const [result = ''] = yield [useTool('calculate', { expression })]
  const value = / = (-?[\d.]+)$/.exec(result)?.[1]
  if (value === undefined) return { text: `${expression}: ${result}` }
  const shown = Number(value).toLocaleString('en-US', { maximumFractionDigits: 12 })
  return { text: `${expression} = **${shown}**`, value: Number(value) }
}

const say = {
  en: {
    working: 'I am looking it up.',
    noMemory: 'I remember nothing about you that answers this.',
    noted: 'I have read your message. It may be remembered after this answer; ask me about it later.',
    refuse: (word: string, columns: string) =>
      `I cannot answer this by rules: I do not know what "${word}" asks for. The columns are: ${columns}`,
    noFigure: 'I found no figure for this. The columns are: ',
    found: 'The values that the question names are known.',
    todos: ['Look the words of the question up', 'Query what is asked for', 'Answer'],
  },
  zh: {
    working: '我来查一下。',
    noMemory: '关于您，我没有记住能回答这个问题的内容。',
    noted: '我看到了您说的话。其中的内容可能会在回答之后被记住，以后可以问我。',
    refuse: (word: string, columns: string) =>
      `无法按规则回答：不清楚“${word}”所问的是什么。各列为：${columns}`,
    noFigure: '没有找到所问的数字。各列为：',
    found: '已查到问题里提到的值。',
    todos: ['查找问题里的词', '查询所问的内容', '回答'],
  },
}

/** The ways to answer a question, in the order in which they are tried. */
function* answerQuestion(
  asked: AskedQuestion,
  language: TextLanguage,
  files: FileContent,
  request: OfflineRequest,
): Work {
  const { question } = asked
  const remembered = recallFact(question, language, request)
  if (isAboutUser(question)) return remembered ?? { text: say[language].noMemory }
  const expression = readArithmetic(question)
  if (expression !== null) return yield* calculate(expression)
  const tables = chooseTables(question, files.tables)
  const answers: Finding[] = []
  for (const table of tables) {
    const answer = yield* askTable(asked, language, table)
    if (answer) answers.push(answer)
  }
  const [first, ...others] = answers.filter(({ isRefused }) => !isRefused)
  if (first) return { ...first, text: [first, ...others].map(({ text }) => text).join('\n') }
  if (remembered) return remembered
  if (isTelling(question)) return { text: say[language].noted }
  if (files.texts.length > 0) return yield* searchTexts(question, language, files.texts.slice(0, mostFiles))
  if (answers[0] || !asksFigure(question) || !tables[0]) return answers[0] ?? null
  return { text: `${say[language].noFigure}${listColumns(tables[0])}`, isRefused: true }
}

/** A question as far as the results allow: the calls that it still needs, or what it found. */
const advance = (steps: Work, resultOf: ResultOf): ToolUse[] | Finding | null => {
  let step = steps.next([])
  while (!step.done) {
    const results = step.value.map(resultOf)
    const missing = step.value.filter((_, at) => results[at] === undefined)
    if (missing.length > 0) return missing
    step = steps.next(results.map((result) => result ?? ''))
  }
  return step.value
}

/** The plan of a run that queries tables, which may begin with a query of values. */
const makeTodos = (language: TextLanguage, calls: readonly ToolUse[]): Record<string, Json>[] => {
  const [lookUp = '', ask = '', answer = ''] = say[language].todos
  const suggested_tools = ['query_table']
  const dependencies = calls.some((call) => call.arguments.includes('WITH question AS')) ? ['look-up'] : []
  const first = dependencies.map((id) => ({ id, task: lookUp, suggested_tools }))
  const query = { id: 'query', task: ask, dependencies, suggested_tools }
  return [...first, query, { id: 'answer', task: answer, dependencies: ['query'] }]
}

/** Names what became of the open tasks of a plan: of all, or of the one with this id. What was refused is not completed. */
const closeTodos = (plan: string, reason: string, isRefused: boolean, only?: string): ToolUse[] => {
  const open = [...plan.matchAll(/^- \[ \] ([^:[\n]+): .*$/gm)].filter(([, id]) => !only || id === only)
  const todos = open.map(([line, id = '']) => {
    return { id, status: isRefused || /, try \d+ of \d+ failed/.test(line) ? 'failed' : 'completed', reason }
  })
  return todos.length > 0 ? [useTool('update_todos', { todos })] : []
}

/** The next step for a request: calls of tools, or the answer. */
export const plan = (request: OfflineRequest): OfflineReply => {
  const prompt = promptOf(request)
  const language = readTextLanguage(prompt)
  const files = readFiles(request)
  const { style, pieces, isNew } = readForm(request)
  const questions =
    pieces.length > 0
      ? pieces.map(({ expected }) => ({ question: expected, before: '' }))
      : splitQuestions(prompt.replace(style, ' '))
  const offered = new Set(request.tools?.map(({ name }) => name))
  const known = resultsOf(request)
  const resultOf: ResultOf = (call) =>
    offered.has(call.name) ? known(call) : `Error: the tool ${call.name} is not offered`
  const steps = questions.map((question) =>
    advance(answerQuestion(question, language, files, request), resultOf),
  )
  const needed = steps.flatMap((step) => (Array.isArray(step) ? step : []))
  const calls = [...new Map(needed.map((call) => [call.arguments, call])).values()]
  const planned = partText(request, titles.plan)
  const plans = offered.has('update_todos') && files.tables.length > 0
  if (calls.length > 0) {
    const structure = pieces.map(({ id, type, expected }) => `${id} (${type}): ${expected}`)
    const first = {
      ...(plans && !planned && { todos: makeTodos(language, calls) }),
      ...(isNew && style && { style }),
      ...(isNew && structure.length > 0 && { structure }),
    }
    const isFirst = offered.has('update_todos') && Object.keys(first).length > 0
    const closed = plans && planned ? closeTodos(planned, say[language].found, false, 'look-up') : []
    const controls = isFirst ? [useTool('update_todos', first)] : closed
    return { text: say[language].working, tool_calls: [...controls, ...calls] }
  }
  const help: Finding = { text: helpText[language], isRefused: true }
  const found = steps.map((step) => (Array.isArray(step) ? help : (step ?? help)))
  const text = [...new Set(found.map((one) => one.text))].join('\n\n')
  return {
    text: toDraft(text, pieces, found),
    tool_calls: plans
      ? closeTodos(
          planned,
          cutText(text, 200),
          found.some(({ isRefused }) => isRefused),
        )
      : [],
  }
}
