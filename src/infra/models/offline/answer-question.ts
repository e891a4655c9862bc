import { answerQuery, choiceNames, describeDocument } from './answer.ts'
import { answerOfUser } from './answer-memory.ts'
import { answerSearch } from './answer-search.ts'
import { answerFromText, questionSearch } from './answer-text.ts'
import { readArithmetic } from './arithmetic.ts'
import { chooseTable } from './choose-table.ts'
import { findColumn } from './concepts.ts'
import { type Desk, done, type Step, waiting } from './desk.ts'
import type { Document } from './documents.ts'
import type { Finding } from './figures.ts'
import { unexplained } from './fit.ts'
import { aboutMe, say } from './frames.ts'
import { isSpent } from './gather.ts'
import type { Asked } from './intent.ts'
import { plain, show } from './numbers.ts'
import { isAskedOfMemory, isToldOfUser, taskIn } from './of-user.ts'
import type { Query } from './query.ts'
import type { Call } from './read-request.ts'
import { readValue } from './read-results.ts'
import { resolve } from './resolve.ts'
import { joinRows, type Table } from './tables.ts'
import { readText, shorten } from './text.ts'
import { findMeasureless, isForeign } from './unsure.ts'

/** One question on its files: a sum, a search, figures of a table, or what the text says. */

/** Sums in words need no file. */
const answerArithmetic = (question: string, desk: Desk): Step | null => {
  const expression = readArithmetic(question)
  if (expression === null) return null
  const call: Call = { name: 'calculate', args: { expression } }
  const made = desk.request.made.findLast(
    (m) => m.name === 'calculate' && m.args.expression === expression && m.result !== null,
  )
  if (made) {
    const value = made.failed ? null : readValue(made.result ?? '')
    if (value === null)
      return done({
        text: say.failedSum(desk.language, expression, shorten(made.result ?? '', 300)),
        empty: true,
      })
    return done({
      text: `${expression} = **${show(value, { before: '', after: '', decimals: 6 })}**`,
      number: value,
      name: plain(value),
    })
  }
  if (desk.request.tools.has('calculate') && !isSpent(desk.request.made, call))
    return waiting('calculate', [call])
  return done({ text: say.failedSum(desk.language, expression, 'no calculate tool'), empty: true })
}

const openAll = (
  files: readonly string[],
  desk: Desk,
): { calls: Call[]; documents: Document[]; failures: string[] } => {
  const gathered = files.map((file) => desk.open(file))
  for (const g of gathered) if (g.state === 'ready' && g.note) desk.notes.add(g.note)
  return {
    calls: gathered.flatMap((g) => (g.state === 'wanted' ? g.calls : [])),
    documents: [
      ...gathered.flatMap((g) => (g.state === 'ready' ? [g.document] : [])),
      ...(desk.inline ? [desk.inline] : []),
    ],
    failures: gathered.flatMap((g) => (g.state === 'failed' ? [g.note] : [])),
  }
}

/** The answer a person gave to `question`, or a call that asks it; null when nobody can be asked. */
const ask = (
  question: string,
  options: readonly string[],
  desk: Desk,
): { answer: string } | { call: Call } | null => {
  const before = desk.request.made.find((made) => made.name === 'ask_user' && made.args.question === question)
  if (before?.result != null && !before.failed) return { answer: before.result }
  const call: Call = { name: 'ask_user', args: { question, options: [...options] } }
  return before || !desk.request.tools.has('ask_user') ? null : { call }
}

const settleFile = (
  asked: Asked,
  query: Query,
  rivals: readonly Query[],
  before: (table: Table) => Query | null,
  desk: Desk,
): Step | Query | Query[] => {
  const all = [query, ...rivals]
  if (rivals.length === 0) return query
  const names = all.map((q) => q.table.name)
  const asking = ask(
    say.whichFile(desk.language, asked.text.raw),
    [...names, say.allFiles(desk.language)].slice(0, 8),
    desk,
  )
  if (asking === null) return all.slice(0, 4)
  if ('call' in asking) return waiting('ask', [asking.call])
  const answer = asking.answer.toLowerCase()
  const joined = /\b(?:all|both)\b|所有|全部/.test(answer) ? joinRows(all.map((q) => q.table)) : null
  if (joined) return resolve(asked, joined, before(joined))
  const chosen = all.filter((q) => answer.includes(q.table.name.toLowerCase()))
  return chosen.length > 0 ? chosen : all.slice(0, 4)
}

const settleColumn = (asked: Asked, query: Query, desk: Desk): Step | Query => {
  if (!findMeasureless(query)) return query
  const options = choiceNames(query)
  const asking = ask(say.whichColumn(desk.language, asked.text.raw), options, desk)
  if (asking && 'call' in asking) return waiting('ask', [asking.call])
  const text = readText(asking?.answer ?? '')
  const named = query.choices.find(
    (column) => findColumn(text, query.table.columns[column]?.name ?? '') !== null,
  )
  const column = named ?? query.choices[0] ?? 0
  return { ...query, measure: { kind: 'column', column }, wanted: [...query.wanted, column], choices: [] }
}

const answerTables = (
  asked: Asked,
  documents: readonly Document[],
  previous: Asked | null,
  desk: Desk,
): Step | null => {
  const before = (table: Table): Query | null => (previous ? resolve(previous, table, null) : null)
  const choice = chooseTable(asked, documents, before)
  if (!choice || isForeign(choice.query)) return null
  if (
    choice.query.score === 0 &&
    !asked.elliptical &&
    unexplained(choice.query).length > 0 &&
    documents.some((d) => d.tables.length === 0)
  )
    return null
  const settled = settleFile(asked, choice.query, choice.rivals, before, desk)
  if ('calls' in settled) return settled
  const findings: Finding[] = []
  for (const query of Array.isArray(settled) ? settled : [settled]) {
    const clear = settleColumn(asked, query, desk)
    if ('calls' in clear) return clear
    const finding = answerQuery(clear, desk.ledger, desk.language)
    findings.push(
      Array.isArray(settled) && settled.length > 1
        ? { ...finding, text: `${query.table.name}: ${finding.text}` }
        : finding,
    )
  }
  const [first] = findings
  return first ? done({ ...first, text: findings.map(({ text }) => text).join('\n') }) : null
}

const answerProse = (
  asked: Asked,
  documents: readonly Document[],
  failures: readonly string[],
  desk: Desk,
): Step => {
  const search = questionSearch(asked)
  const found = documents
    .filter((d) => d.tables.length === 0 || documents.length === 1)
    .map(({ file, lines }) => ({ file, lines, context: lines }))
  const finding = answerFromText(asked, found, search, desk.language)
  if (finding) return done({ ...finding, text: [finding.text, ...failures].join('\n') })
  const nothing = [...failures, say.notFound(desk.language, asked.text.raw), aboutMe[desk.language]].join(
    '\n\n',
  )
  return done({ text: nothing, empty: true })
}

/** One question on its files; `previous` is the question before it, for follow-ups. */
export const answerQuestion = (
  asked: Asked,
  files: readonly string[],
  previous: Asked | null,
  desk: Desk,
): Step => {
  const question = asked.text.raw
  const ofUser = answerOfUser(question, desk)
  if (ofUser && isAskedOfMemory(question)) return done(ofUser)
  const step = answerOtherwise(asked, files, previous, desk)
  if (step.kind !== 'none' || !step.finding.empty) return step
  if (ofUser) return done(ofUser)
  const isTold = files.length === 0 && !desk.inline && isToldOfUser(question)
  return isTold ? done({ text: say.toldOfYou(desk.language), empty: true }) : step
}

const answerOtherwise = (
  asked: Asked,
  files: readonly string[],
  previous: Asked | null,
  desk: Desk,
): Step => {
  if (asked.manner === 'greeting' || (asked.manner === 'writing' && asked.aggregate === null))
    return done({ text: aboutMe[desk.language], empty: true })
  const sum = answerArithmetic(asked.text.raw, desk) ?? answerArithmetic(taskIn(asked.text.raw) ?? '', desk)
  if (sum) return sum
  if (files.length === 0 && !desk.inline) {
    const nothing = isAskedOfMemory(asked.text.raw)
      ? [say.nothingOfYou(desk.language, shorten(asked.text.raw, 200))]
      : []
    return done({ text: [...nothing, aboutMe[desk.language]].join('\n\n'), empty: true })
  }
  if ((asked.manner === 'lines' || asked.manner === 'count_lines') && asked.term && files.length > 0)
    return answerSearch(asked, files, desk)
  const { calls, documents, failures } = openAll(files, desk)
  if (calls.length > 0) return waiting('read', calls)
  if (documents.length === 0) return done({ text: failures.join('\n'), empty: true })
  if (asked.manner === 'describe' || isAboutSize(asked)) {
    const outlines = documents.map((document) => describeDocument(document, desk.language))
    const sizes = isAboutSize(asked) ? documents.map((document) => sizeOf(asked, document, desk)) : outlines
    return done({ ...sizes[0], text: [...sizes.map(({ text }) => text), ...failures].join('\n\n') })
  }
  const untabled = documents.every((document) => document.tables.length === 0)
  if (untabled && asked.aggregate === 'count' && asked.subject)
    return answerSearch(
      { ...asked, manner: 'count_lines', term: { words: asked.subject, exact: false } },
      files,
      desk,
    )
  return answerTables(asked, documents, previous, desk) ?? answerProse(asked, documents, failures, desk)
}

const isAboutSize = (asked: Asked): boolean =>
  /^(?:how many|number of|count(?: the| of)?)? ?(?:lines|columns)\b[^a-z]*(?:(?:are|does|is|do|there|total|altogether|it|this|the|that|file|in|have|has|contain)\b[^a-z]*)*$/i.test(
    asked.text.raw.replace(/^.*?(?=how many|number of|count)/i, ''),
  ) || /^(?:这个?)?(?:文件)?(?:一共|共)?有?(?:多少|几)[行列][？?。]?$/.test(asked.text.raw)

const sizeOf = (asked: Asked, document: Document, desk: Desk): Finding => {
  const columns = /column|列/i.test(asked.text.raw)
  const number = columns ? (document.tables[0]?.columns.length ?? 0) : (document.lines.at(-1)?.n ?? 0)
  const what = desk.language === 'zh' ? (columns ? '列' : '行') : columns ? 'columns' : 'lines'
  const names = columns ? (document.tables[0]?.columns.map(({ name }) => name) ?? []) : []
  const listed = names.length > 0 ? `: ${names.join(', ')}` : ''
  return { text: `${document.file}: **${number}** ${what}${listed}`, number, names }
}
