import type { Aggregate } from './intent.ts'
import type { Row, Table } from './tables.ts'
import { type Language, showRanges } from './text.ts'

/** Sentence frames in English and Chinese; all text that is not quoted from a file or a question stands here. */

export const aboutMe: Record<Language, string> = {
  en: "I am Mason's built-in offline model: a rules engine, not a language model. I can find, list, quote, count, filter, add up, average, compare and rank what is in the files you give me (CSV, TSV, JSON, Markdown tables, key: value lines, logs and plain text), and do arithmetic. I can't answer from general knowledge, write texts or explain. Set OPENAI_API_KEY (or OPENAI_BASE_URL) to use a language model.",
  zh: '我是 Mason 内置的离线模型（mason-offline）：一个规则引擎，不是语言模型。我可以在您给的文件（CSV、TSV、JSON、Markdown 表格、key: value 行、日志和纯文本）中查找、列出、引用、计数、筛选、求和、求平均、比较和排序，也可以做算术。我不能凭常识回答、写作或解释。设置 OPENAI_API_KEY（或 OPENAI_BASE_URL）即可使用语言模型。',
}

const english: Record<Aggregate, (name: string) => string> = {
  sum: (name) => (/^total/i.test(name) ? upper(name) : `Total ${name}`),
  avg: (name) => (/^(?:average|mean)/i.test(name) ? upper(name) : `Average ${name}`),
  median: (name) => `Median ${name}`,
  min: (name) => `Lowest ${name}`,
  max: (name) => `Highest ${name}`,
  count: (name) => `Number of ${name}`,
}
const chinese: Record<Aggregate, (name: string) => string> = {
  sum: (name) => `${name}总和`,
  avg: (name) => `${name}平均值`,
  median: (name) => `${name}中位数`,
  min: (name) => `${name}最小值`,
  max: (name) => `${name}最大值`,
  count: (name) => `${name}数量`,
}

const spaced = (name: string): string => (/[\w)]$/.test(name) ? `${name} ` : name)

const upper = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

export const labelOf = (language: Language, aggregate: Aggregate, name: string): string =>
  language === 'zh' ? chinese[aggregate](spaced(name)) : english[aggregate](name)

export const whereOf = (language: Language, filters: readonly string[]): string => {
  if (filters.length === 0) return ''
  return language === 'zh' ? `（条件：${filters.join('，')}）` : ` where ${filters.join(' and ')}`
}

export const rowCount = (language: Language, n: number): string =>
  language === 'zh' ? `${n} 行` : n === 1 ? '1 row' : `${n} rows`

/** `sales.csv, lines 2-13`, for each file the rows come from. */
export const placesOf = (language: Language, rows: readonly Row[], table: Table): string => {
  const files = [...new Set(rows.map((row) => row.file))]
  return files
    .slice(0, 5)
    .map((file) => {
      const places = rows.filter((row) => row.file === file).map((row) => row.place)
      const ranges = showRanges([...places].sort((a, b) => a - b))
      if (language === 'zh') return `${file} 第 ${ranges} ${table.unit === 'item' ? '项' : '行'}`
      return `${file}, ${table.unit}${places.length === 1 ? '' : 's'} ${ranges}`
    })
    .join('; ')
}

/** One sentence each; `$1`-like gaps are arguments. */
export const say = {
  noRows: (l: Language, where: string, file: string) =>
    l === 'zh' ? `${file} 中没有符合条件的行${where}。` : `No rows in ${file} match${where}.`,
  values: (l: Language, column: string, values: string) =>
    l === 'zh' ? `${column} 的取值有：${values}。` : `${column} holds: ${values}.`,
  noNumbers: (l: Language, column: string) =>
    l === 'zh' ? `${column} 列中没有数字。` : `There are no numbers in ${column}.`,
  skipped: (l: Language, n: number, column: string) =>
    l === 'zh'
      ? `（${n} 行的 ${column} 不是数字，未计入）`
      : ` (${n} ${n === 1 ? 'row' : 'rows'} without a number in ${column} left out)`,
  totals: (l: Language, lines: string) =>
    l === 'zh'
      ? `（第 ${lines} 行是合计行，未重复计入）`
      : ` (line ${lines} is a totals line and not counted again)`,
  and: (l: Language) => (l === 'zh' ? '、' : ', '),
  more: (l: Language, n: number) => (l === 'zh' ? `…… 还有 ${n} 项` : `… and ${n} more`),
  with: (l: Language, group: string, label: string, least: boolean) => {
    if (l === 'zh') return `${label}最${least ? '低' : '高'}的 ${group}`
    const name = label.charAt(0).toLowerCase() + label.slice(1)
    return `${upper(group)} with the ${least ? 'lowest' : 'highest'} ${name}`
  },
  by: (l: Language, label: string, group: string) =>
    l === 'zh' ? `按 ${group} 的${label}` : `${label} by ${group}`,
  share: (l: Language, part: string, whole: string) =>
    l === 'zh' ? `${part}占${whole}的比例` : `Share of ${whole}${part}`,
  difference: (l: Language) => (l === 'zh' ? '相差' : 'difference'),
  unchecked: (l: Language) =>
    l === 'zh'
      ? '（calculate 工具不可用，部分数字由我直接算出。）'
      : '(The calculate tool was not available; some figures are my own arithmetic.)',
  partial: (l: Language, file: string, got: number, total: number) =>
    l === 'zh'
      ? `注意：只读到 ${file} 的 ${got} / ${total} 行。`
      : `Note: only ${got} of the ${total} lines of ${file} were read.`,
  unreadable: (l: Language, file: string, reason: string) =>
    l === 'zh' ? `无法读取 ${file}：${reason}` : `I could not read ${file}: ${reason}`,
  foundLines: (l: Language, n: number, what: string, file: string) => {
    if (l === 'zh') return `${file} 中有 ${n} 行提到“${what}”`
    return `${n} ${n === 1 ? 'line' : 'lines'} of ${file} ${n === 1 ? 'mentions' : 'mention'} "${what}"`
  },
  foundNothing: (l: Language, what: string, file: string) =>
    l === 'zh' ? `${file} 中没有提到“${what}”的内容。` : `Nothing in ${file} mentions "${what}".`,
  says: (l: Language, file: string, what: string) =>
    l === 'zh' ? `${file} 中关于“${what}”的内容：` : `What ${file} says about "${what}":`,
  line: (l: Language, n: number) => (l === 'zh' ? `第 ${n} 行` : `line ${n}`),
  outline: (l: Language, file: string, lines: number) =>
    l === 'zh'
      ? `${file} 共 ${lines} 行。我不能写总结（我是规则引擎，不是语言模型），但可以列出内容概况：`
      : `${file} has ${lines} lines. I can't write a summary (I am a rules engine, not a language model), but this is what is in it:`,
  remembered: (l: Language, from: 'talk' | 'memory' | 'profile', text: string) => {
    const heads = {
      en: { talk: 'You told me', memory: 'I remember', profile: 'Your profile says' },
      zh: { talk: '您告诉过我', memory: '我记得', profile: '您的资料里写着' },
    }
    return l === 'zh' ? `${heads.zh[from]}：“${text}”` : `${heads.en[from]}: "${text}"`
  },
  toldOfYou: (l: Language) =>
    l === 'zh'
      ? '我看到了您说的话。其中的内容可能会在回答之后被记住，以后可以问我。'
      : 'I have read what you told me. It may be remembered after this answer; ask me about it later.',
  nothingOfYou: (l: Language, question: string) =>
    l === 'zh'
      ? `关于您，我没有记住能回答“${question}”的内容。`
      : `I remember nothing about you that answers "${question}".`,
  notFound: (l: Language, question: string) =>
    l === 'zh'
      ? `我在文件中没有找到能回答“${question}”的内容。`
      : `I found nothing in the files that answers "${question}".`,
  whichColumn: (l: Language, question: string) =>
    l === 'zh' ? `“${question}”指的是哪一列？` : `Which column do you mean in "${question}"?`,
  whichFile: (l: Language, question: string) =>
    l === 'zh' ? `“${question}”指的是哪个文件？` : `Which file do you mean in "${question}"?`,
  allFiles: (l: Language) => (l === 'zh' ? '所有文件合计' : 'All of them together'),
  reading: (l: Language, files: string) => (l === 'zh' ? `我先读取 ${files}。` : `I am reading ${files}.`),
  searching: (l: Language, term: string) =>
    l === 'zh' ? `我在文件中查找“${term}”。` : `I am searching for "${term}".`,
  calculating: (l: Language, n: number) =>
    l === 'zh'
      ? `我来计算${n > 1 ? `（${n} 个算式）` : ''}。`
      : n > 1
        ? `I am working out ${n} figures.`
        : 'I am working out the figure.',
  asking: (l: Language) =>
    l === 'zh'
      ? '请求里有一处不明确，我先问一下。'
      : 'One thing in the request is not clear, so I am asking.',
  failedSum: (l: Language, expression: string, reason: string) =>
    l === 'zh' ? `无法计算 ${expression}：${reason}` : `I could not work out ${expression}: ${reason}`,
}
