/** Sums in words ("what is 12.5% of 480?", "3乘以5") as expressions for the calculate tool. */

type Rule = readonly [pattern: RegExp, expression: string]
const number = '(-?(?:\\d[\\d,]*(?:\\.\\d+)?|\\.\\d+))'
const percent = '(?:%|percent)'

/** Whole questions; $1 and $2 are their numbers. */
const forms: readonly Rule[] = [
  [new RegExp(`^(?:a )?${number} ?${percent} (?:of|(?:tip|tax) (?:on|of)) ${number}$`), '$2 * $1 / 100'],
  [new RegExp(`^${number}的${number} ?%$`), '$1 * $2 / 100'],
  [new RegExp(`^increase ${number} by ${number} ?${percent}$`), '$1 * (1 + $2 / 100)'],
  [new RegExp(`^(?:decrease|reduce) ${number} by ${number} ?${percent}$`), '$1 * (1 - $2 / 100)'],
]

/** Words for operators, replaced one after the other. */
const operators: readonly Rule[] = [
  [new RegExp(`(?:the )?square root of ${number}|(?<![\\d.,])${number}的平方根`, 'g'), 'sqrt($1$2)'],
  [/ squared|的平方/g, ' ^ 2'],
  [/ divided by |除以|÷/g, ' / '],
  [/ (?:multiplied by|times) |乘以|乘|[×✕]/g, ' * '],
  [/ plus |加上|加/g, ' + '],
  [/ minus |减去|减|[−–]/g, ' - '],
]

const lists: readonly Rule[] = [
  [/^(?:the )?(?:sum|total) of (.+)$|^(.+)的(?:总和|和)$/, 'sum'],
  [/^(?:the )?(?:average|mean) of (.+)$|^(.+)的平均(?:值|数)?$/, 'avg'],
]

const opening =
  /^(?:please |can you )*(?:what(?:'s| is| are)|calculate|compute|work out|how much is|tell me|请问|请?(?:帮我)?(?:计算一下|计算|算一下|求)|请)\s*/
const closing = /(?<![?？.。!！=\s])[?？.。!！=\s]+$/
const closingWords = /(?:等于(?:多少|几)?|是(?:多少|几)|为多少|多少)$/

const withoutCommas = (text: string): string => text.replace(/(?<=\d),(?=\d{3})/g, '')

const numbersIn = (text = ''): string[] | null => {
  const parts = text.split(/(?<!\s)\s*(?:,? and |, ?(?!\d{3}\b)|，|、|和|与)\s*/)
  const areNumbers = parts.length > 1 && parts.every((part) => /^-?(?:[\d,]*\.\d+|[\d,]*\d)$/.test(part))
  return areNumbers ? parts.map(withoutCommas) : null
}

/** The expression that a question asks for when it is nothing but a sum, else null. */
export const readArithmetic = (question: string): string | null => {
  if (question.length > 1000 || !/\d/.test(question)) return null
  const text = [closing, closingWords, closing, opening].reduce(
    (rest, pattern) => rest.replace(pattern, ''),
    question.trim().toLowerCase(),
  )
  for (const [pattern, name] of lists) {
    const match = pattern.exec(text)
    const numbers = match && numbersIn(match[1] ?? match[2])
    if (numbers) return `${name}(${numbers.join(', ')})`
  }
  for (const [pattern, expression] of forms)
    if (pattern.test(text)) return withoutCommas(text.replace(pattern, expression))
  const sum = operators
    .reduce((rest, [pattern, sign]) => rest.replace(pattern, sign), withoutCommas(text))
    .replace(/\s+/g, ' ')
    .trim()
  const isSum = /^[\d\s.+\-*/%^()]+$/.test(sum.replaceAll('sqrt', '')) && /\d\s*[)+\-*/%^]|\(/.test(sum)
  return isSum && !/^\d{4}-\d\d?(?:-\d\d?)?$|[+\-*/%^(]$/.test(sum) ? sum : null
}
