import { titles } from '../../context/sections.ts'
import type { Json } from '../../state/runtime-state.ts'
import { cutText } from '../../state/text/cut-text.ts'
import { readTextLanguage, type TextLanguage } from '../../state/text/text-language.ts'
import { describeRows, type Finding } from './answers.ts'
import { readArithmetic } from './arithmetic.ts'
import { valuesQuery } from './conditions.ts'
import { readForm, toDraft } from './output.ts'
import { type AskedQuestion, splitQuestions } from './questions.ts'
import {
  isFailure,
  linesOf,
  type OfflineReply,
  type OfflineRequest,
  partText,
  promptOf,
  type ResultOf,
  resultsOf,
  type ToolUse,
  useTool,
} from './request.ts'
import { readQuestion } from './sql-question.ts'
import { type FileContent, readFiles, readRows, type Table } from './tables.ts'
import { asksFigure, contentWords, escapePattern, hasHan, helpText, stem, stemsOf } from './words.ts'

/** Questions on texts: the lines that hold their words, found by search_file_content. */

const counting = /\bhow (?:many|often)\b|\b(?:count|number of)\b|多少|几[行次处]/i
const mostShown = 8
type Terms = { words: readonly string[]; pattern: string }

/** What is in quotation marks or in capitals stands as it is; of other words the stem, in any case. */
const readTerms = (question: string, files: readonly string[]): Terms | null => {
  const quoted = /["“「]([^"“「”」]+)["”」]/.exec(question)?.[1]
  if (quoted) return { words: [quoted], pattern: escapePattern(quoted) }
  const named = new Set(files.flatMap(contentWords))
  const words = contentWords(question).filter((word) => !named.has(word))
  const capitals = words.filter((word) => /^[A-Z]{2,}$/.test(word))
  if (capitals.length > 0) return { words: capitals, pattern: capitals.join('|') }
  const stems = words.map((word) => escapePattern(hasHan(word) ? word : stem(word)))
  return words.length === 0 ? null : { words, pattern: `(?i)${stems.join('|')}` }
}

type Line = { line: string | undefined; text: string }
const lineEnd = /(?<=\]), (?=\[Line )|\n/
const linePattern = /^\[Line (\d+)(?!\d)[^:\]]*: (.*)\](?= \(|$)/

/** How many lines a result speaks of, also where it shows fewer. */
const countIn = (result: string, shown: number): number =>
  Number(/Found (\d+) lines?/.exec(result)?.[1] ?? shown + Number(/\(and (\d+) more/.exec(result)?.[1] ?? 0))

type Search = Generator<ToolUse[], Finding | null, string[]>

/** Searches each file for the words of a question; null where it has no words to search for. */
function* searchTexts(question: string, language: TextLanguage, files: readonly string[]): Search {
  const terms = readTerms(question, files)
  if (terms === null) return null
  const { words, pattern } = terms
  const what = words.join(' ')
  const isCount = counting.test(question)
  const say = (en: string, zh: string): string => (language === 'zh' ? zh : en)
  const score = (text: string): number => words.filter((word) => stemsOf(text).includes(stem(word))).length
  const describe = (file: string, lines: readonly Line[], total: number): string => {
    if (total === 0)
      return say(`Nothing in ${file} mentions "${what}".`, `${file} 中没有提到“${what}”的内容。`)
    if (isCount)
      return say(`Lines of ${file} with "${what}": **${total}**`, `${file} 中有 **${total}** 行提到“${what}”`)
    const best = lines.toSorted((a, b) => score(b.text) - score(a.text)).slice(0, mostShown)
    const quotes = best.map(({ line, text }) => say(`- line ${line}: ${text}`, `- 第 ${line} 行：${text}`))
    return [say(`What ${file} says about "${what}":`, `${file} 中关于“${what}”的内容：`), ...quotes].join(
      '\n',
    )
  }
  const results = yield files.map((file_path) => useTool('search_file_content', { file_path, pattern }))
  const found = results.map((result, at) => {
    const file = files[at] ?? ''
    if (isFailure(result)) return { text: `${file}: ${result}`, total: 0 }
    const lines = result.split(lineEnd).flatMap((part) => {
      const [whole, line, text = ''] = linePattern.exec(part.slice(part.indexOf('[Line '))) ?? []
      return whole === undefined ? [] : [{ line, text }]
    })
    const total = countIn(result, lines.length)
    return { text: describe(file, lines, total), total }
  })
  const total = found.reduce((sum, one) => sum + one.total, 0)
  const shown = found.filter((one) => one.total > 0 || total === 0)
  return { text: shown.map(({ text }) => text).join('\n\n'), value: isCount ? total : null }
}

/** Questions about the user, answered from the profile and the memories in the prompt. */

const name = String.raw`\p{Lu}[\p{L}'’-]*(?: \p{Lu}[\p{L}'’.-]*){0,3}`
const han = String.raw`\p{Script=Han}{2,4}`

/** What is asked for in one word and said in others: the first group of what says it is the value. */
const aspects: readonly { asks: RegExp; says: RegExp }[] = [
  {
    asks: /^(?:do you (?:know|remember) |what(?:'s| is) )?my (?:full )?name\b|^who am i\b|我叫(?:什么|啥)|我的?(?:名字|姓名)|我是谁[?？]?$/i,
    says: new RegExp(
      `(?:\\b[Mm]y name is|[Cc]all me|^The user is|(?:user|user's name) is(?: named)?) (${name}|${han})|我叫\\s*(${han})`,
      'u',
    ),
  },
  {
    asks: /\bwhere (?:do i live|am i (?:living|from|based))|我(?:现在)?住在?哪/i,
    says: new RegExp(
      `\\bI (?:now )?(?:live in|am based in|moved to|am from) ((?:the )?${name})|^The user is .*\\bin (${name})\\.$|我(?:现在)?(?:住在|搬到)了?(${han})`,
      'u',
    ),
  },
]

const question = /[?？]\s*$|^(?:what|who|when|where|which|how|do|does|did|am|is|tell me)\b|什么|谁|哪|几|吗/i
const personal = /\b(?:i|i'm|my|me|we|our)\b|我/i
const everything = /\b(?:know|remember)\b.{0,20}\b(?:about|of) me\b|(?:知道|记得|了解)(?:关于)?我/i
const earlierTalk = /\b(?:did we (?:talk|speak|discuss)|we (?:talked|spoke|discussed))\b|上次|之前(?:聊|谈)/i
const telling =
  /\b(?:my name is|call me|i am|i'm|i live|i work|i (?:\w+ )?(?:like|love|prefer|hate|speak|never|always)|remember that)\b|我(?:叫|是|住|喜欢|不喜欢|会)|记住/i
const task =
  /\bplease (?!call me|remember)|(?:^|[,.，。] *)(?:write|translate|fix|compute|calculate|explain)|请(?!记住|叫我)|帮我/i

const asking = new Set('am tell told say remember know about did do does have again now called 我'.split(' '))

/** Whether a question is about the user, so that no file answers it. */
const isAboutUser = (text: string): boolean =>
  question.test(text) &&
  [everything, earlierTalk, ...aspects.map(({ asks }) => asks)].some((pattern) => pattern.test(text.trim()))

/** Whether a text says something of the user and asks for nothing. */
const isTelling = (text: string): boolean =>
  telling.test(text) && !question.test(text.trim()) && !task.test(text)

/** The latest statement that answers a question about the user; null where none does. */
const recallFact = (text: string, language: TextLanguage, request: OfflineRequest): Finding | null => {
  if (!question.test(text) || !personal.test(text)) return null
  const quote = (fact: string): string => (language === 'zh' ? `我记得：“${fact}”` : `I remember: "${fact}"`)
  const list = (facts: readonly string[]): Finding | null =>
    facts.length === 0
      ? null
      : { text: facts.map((fact) => `- ${quote(fact)}`).join('\n'), value: [...facts] }
  const memories = [titles.memory, titles.preferences].flatMap((title) => linesOf(partText(request, title)))
  const talks = memories.filter((memory) => memory.startsWith('Earlier talk, until ')).toReversed()
  const facts = memories.filter((memory) => !talks.includes(memory)).toReversed()
  const known = [...linesOf(partText(request, titles.user)), ...facts]
  if (earlierTalk.test(text)) return list(talks)
  if (everything.test(text)) return list(known.slice(0, 10))
  for (const { asks, says } of aspects)
    for (const fact of asks.test(text) ? known : []) {
      const value = says.exec(fact)?.slice(1).find(Boolean)
      if (value) return { text: `**${value}** (${quote(fact)})`, value }
    }
  const words = contentWords(text).filter((word) => !asking.has(word.toLowerCase()))
  const holds = (fact: string, word: string): boolean =>
    hasHan(word) ? fact.includes(word) : stemsOf(fact).includes(stem(word))
  const best = known.find((fact) => words.length > 0 && words.every((word) => holds(fact, word)))
  return best === undefined ? null : { text: quote(best), value: best }
}

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
  const last = { id: 'answer', task: answer, dependencies: ['query'] }
  return [...first, query, last]
}

/** Names what became of the open tasks of a plan: of all, or of the one with this id. What was refused is not completed. */
const closeTodos = (plan: string, reason: string, isRefused: boolean, only?: string): ToolUse[] => {
  const open = [...plan.matchAll(/^- \[ \] ([^:\n]+): .*$/gm)].filter(([, id]) => !only || id === only)
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
