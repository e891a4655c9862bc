import type { TextLanguage } from '../../state/text/text-language.ts'

/** The vocabulary of questions in English and Chinese: stems, words that mean the same, and what is asked for. */

export const hasHan = (text: string): boolean => /\p{Script=Han}/u.test(text)

/** Pairs of a word and what it stands for. */
const pairs = (text: string): ReadonlyMap<string, string> =>
  new Map(text.split(', ').map((pair) => pair.split(' ', 2) as [string, string]))

const irregular = pairs('people person, sold sell, sale sell, sales sell, spent spend')

/** A light English stem: plural, -ed, -ing and a last e go. Other scripts stay as they are. */
export const stem = (word: string): string => {
  const lower = word.toLowerCase()
  const known = irregular.get(lower)
  if (known || !/^[a-z]{4,}$/.test(lower)) return known ?? lower
  const base = lower
    .replace(/ies$/, 'y')
    .replace(/(x|ch|sh|ss)es$|([^sui])s$/, '$1$2')
    .replace(/(?<=.{3})ing$|(?<=.{2}[^e])ed$/, '')
    .replace(/([bdfgmnprt])\1$/, '$1')
  return base.length > 3 ? base.replace(/e$/, '') : base
}

/** The words of a text: camel case and underscores part them, and Han letters stay together. */
const wordsOf = (text: string): string[] =>
  text
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .match(/\p{Script=Han}+|[^\P{L}\p{Script=Han}]+|\d+(?:\.\d+)?/gu) ?? []

export const stemsOf = (text: string): string[] => wordsOf(text).map(stem)

export const escapePattern = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** Each line is one meaning that columns and questions may word differently. */
const meanings =
  `revenue sale turnover amount income spend earnings value 销售额 收入 营收 营业额 金额 总额 消费
quantity qty unit piece count 数量 件数 销量 多少件
price expensive cheap cheapest 价格 单价 售价 最贵 便宜
cost expense 成本 费用 支出
customer client buyer who 客户 顾客 买家 谁
product item article goods 产品 商品 品名
region area territory 地区 区域 大区
date day when latest newest earliest 日期 时间 最新 最近 最早
status state 状态
name employee staff person seller who 姓名 名称 名字 员工 谁
category type kind 类别 分类 种类 类型
salary wage pay 工资 薪资 薪水
order purchase 订单
month 月
year 年
age old oldest young youngest 年龄`
    .split('\n')
    .map((line) => line.split(' ').map(stem))

/** The words of all meanings that a name has. */
const synonymsOf = (name: string): string[] =>
  meanings
    .filter((meaning) =>
      wordsOf(name).some((word) =>
        meaning.some((one) => one === stem(word) || (hasHan(one) && word.includes(one))),
      ),
    )
    .flat()

/** How surely a text speaks of a name (3 in full, 2 by its last word, 1 by meaning, 0.5 by another word) and where; null: not at all. */
export const findName = (text: string, name: string): { score: number; at: number } | null => {
  const stems = stemsOf(text)
  const own = wordsOf(name)
  const placeOf = (word: string): number => (hasHan(word) ? text.indexOf(word) : stems.indexOf(stem(word)))
  const full = hasHan(name)
    ? text.indexOf(name)
    : stems.findIndex((_, at) => own.every((word, next) => stems[at + next] === stem(word)))
  if (own.length > 0 && full >= 0) return { score: 3, at: full }
  const isGeneral = (word: string): boolean => /^(?:id|no|number|code|name|of|the|usd|eur|cny)$/i.test(word)
  const telling = own.filter((word) => word.length > 1 && !isGeneral(word)).toReversed()
  const part = telling.findIndex((word) => placeOf(word) >= 0)
  // "unit" alone does not name unit_price as surely as "price"
  if (part >= 0) return { score: part === 0 ? 2 : 0.5, at: placeOf(telling[part] ?? '') }
  const meant = synonymsOf(name)
    .map(placeOf)
    .find((at) => at >= 0)
  return meant === undefined ? null : { score: 1, at: meant }
}

/** English words for values that a Chinese question names. */
const translations = pairs(
  '退货 returned, 退了 returned, 退款 refunded, 完成 completed, 取消 cancelled, 发货 shipped, 付款 paid, 支付 paid, 北 north, 南 south, 东 east, 西 west',
)

/** What a question has translations for: 东西 is a thing, unless it stands for two regions. */
const translated = (question: string): [word: string, english: string][] => {
  const text = question.replaceAll(/东西(?![区部两])/g, ' ')
  return [...translations].filter(([word]) => text.includes(word))
}

/** The question and, for a Chinese one, the English words that a table may have for it. */
export const withTranslations = (question: string): string =>
  [question, ...translated(question).map(([, english]) => english)].join(' ')

/** The texts of a question that name a value, in its own words or translated. */
export const wordsForValue = (question: string, value: string): string[] => {
  const at = question.toLowerCase().indexOf(value.toLowerCase())
  const han = translated(question)
    .filter(([, english]) => english === value.toLowerCase())
    .map(([word]) => (question.includes(`${word}区`) ? `${word}区` : word))
  return at < 0 ? han : [question.slice(at, at + value.length), ...han]
}

const setOf = (words: string): ReadonlySet<string> => new Set(words.split(/\s+/).map(stem))

const common =
  setOf(`a an the of in on at to for from by with and or is are was were be do does did has have had what
  which who when where why how many much please tell me show list give find all any each there this that it its their
  they i we you our my your can could would will say said file document text about line row mention contain no not as
  than then also quote some us word`)
const filler =
  /请|帮我|告诉我|列出|显示|找出|引用|查找|搜索|文件|文档|文本|里面|中的|里的|关于|有关|提到|包含|含有|内容|什么|多少|哪些|哪个|几|行|的|了|吗|呢|有|在|是|说|中|里|和|与|都|所有|怎么|如何/g

/** The words that carry the meaning of a question. */
export const contentWords = (question: string): string[] => {
  const words = wordsOf(question).flatMap((word) => word.replace(filler, ' ').split(/\s+/))
  return [...new Set(words)].filter((word) => (word.length > 1 || hasHan(word)) && !common.has(stem(word)))
}

/** Words of questions on tables that ask for nothing, and those that always do. */
const plain = setOf('sell buy buy bought make made place s re row record entry data table column there')
const operators = setOf('no not or than without except only each every it its they their')
/** Signs of comparisons and shares. */
const signs = /[%‰<>=≠≤≥±]/
const plainHan = new RegExp(
  `${filler.source}|[个位名家款种条笔件单张把这那得表出到过谁哪买卖购下售]|销售|数据|记录`,
  'gu',
)

/**
 * The first word of a question that a query has not used: none of the names explains it, and it is in none of the patterns. The user who
 * asked it meant something that the figure would not say.
 */
export const findUnusedWord = (
  question: string,
  names: readonly string[],
  patterns: readonly RegExp[],
): string | null => {
  const han = names.flatMap((name) => [name, ...synonymsOf(name)]).filter(hasHan)
  const longest = han.toSorted((a, b) => b.length - a.length)
  const rest = patterns.reduce((text, pattern) => text.split(pattern).join(' '), question)
  const [sign] = signs.exec(rest) ?? []
  if (sign) return sign
  for (const word of wordsOf(rest)) {
    const isPlain = (common.has(stem(word)) || plain.has(stem(word))) && !operators.has(stem(word))
    if (isPlain || (!hasHan(word) && names.some((name) => findName(word, name)))) continue
    if (!hasHan(word)) return word
    const left = longest
      .reduce((text, one) => text.replaceAll(one, ' '), word)
      .replace(plainHan, ' ')
      .trim()
    if (left !== '') return left.split(/\s+/)[0] ?? left
  }
  return null
}

/** What the words of a question ask to be done with a table. */
export const asks = {
  count:
    /\bhow many\b|\b(?:number|count) of\b|\bcount\b|(?<![是为])多少(?!钱)|几[个条笔人行次家种名位单]|(?:订单|客户|产品|商品|人|行|单)数量?/i,
  sum: /\b(?:total|sum|overall|altogether|how much)\b|总|合计|求和|统计|一共/i,
  avg: /\b(?:average|mean)\b|平均|均值/i,
  max: /\b(?:highest|largest|biggest|greatest|most|max(?:imum)?|top|best|oldest|latest|newest)\b|最[大高多贵新近好]|前[\d一二三四五六七八九十]/i,
  min: /\b(?:lowest|smallest|least|fewest|min(?:imum)?|bottom|worst|cheapest|youngest|earliest)\b|最[小低少早差]|最便宜|后[\d一二三四五六七八九十]/i,
  list: /\b(?:list|show|display|which|names? of|what are the)\b|列出|显示|找出|哪些/i,
} as const

/** Whether a question asks for what a table could say. */
export const asksFigure = (question: string): boolean =>
  Object.values(asks).some((pattern) => pattern.test(question))

export const helpText: Record<TextLanguage, string> = {
  en: "I am Mason's built-in offline model: a rules engine, not a language model. I can count, add up, average, filter, group and rank the tables in your files, search their text, do arithmetic, and say what is remembered of you. For anything else, set OPENAI_API_KEY (or OPENAI_BASE_URL) to use a language model.",
  zh: '我是 Mason 内置的离线模型：一个规则引擎，不是语言模型。我可以对文件中的表格计数、求和、求平均、筛选、分组和排名，可以搜索文件中的文字、做算术，也可以说出记住的关于您的内容。其他问题请设置 OPENAI_API_KEY（或 OPENAI_BASE_URL）来使用语言模型。',
}
