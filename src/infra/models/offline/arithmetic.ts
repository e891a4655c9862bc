/** Sums in words ("what is 12.5% of 480?", "3乘以5") as an expression for the calculate tool. */

const number = '(-?(?:\\d[\\d,]*(?:\\.\\d+)?|\\.\\d+))'

type Rule = readonly [pattern: RegExp, expression: string]

/** Whole-sentence forms first; $1, $2 are numbers. */
const forms: readonly Rule[] = [
  [new RegExp(`^${number} ?(?:%|percent) of ${number}$`), '$2 * $1 / 100'],
  [new RegExp(`^${number}的${number} ?%$`), '$1 * $2 / 100'],
  [new RegExp(`^(?:increase )${number} by ${number} ?(?:%|percent)$`), '$1 * (1 + $2 / 100)'],
  [new RegExp(`^(?:decrease|reduce) ${number} by ${number} ?(?:%|percent)$`), '$1 * (1 - $2 / 100)'],
  [new RegExp(`^${number} ?(?:\\+|plus) ?${number} ?(?:%|percent)$`), '$1 * (1 + $2 / 100)'],
  [new RegExp(`^${number} ?(?:-|minus) ?${number} ?(?:%|percent)$`), '$1 * (1 - $2 / 100)'],
  [
    new RegExp(`^(?:a )?${number} ?(?:%|percent) (?:off|discount on) (?:of )?${number}$`),
    '$2 * (1 - $1 / 100)',
  ],
  [
    new RegExp(`^(?:a )?${number} ?(?:%|percent) (?:tip|tax|vat|interest) (?:on|of) ${number}$`),
    '$2 * $1 / 100',
  ],
  [new RegExp(`^${number} as (?:a )?(?:%|percent|percentage) of ${number}$`), '100 * $1 / $2'],
  [new RegExp(`^(?:what )?(?:percent|percentage|%) (?:of ${number} is ${number})$`), '100 * $2 / $1'],
  [new RegExp(`^${number} is what (?:percent|percentage|%) of ${number}$`), '100 * $1 / $2'],
  [new RegExp(`^${number}占${number}的(?:百分比|百分之几|比例|多少)$`), '100 * $1 / $2'],
]

/** Words for operators, applied one after the other inside a longer sum. */
const operators: readonly Rule[] = [
  [/(?:the )?(?:square root|sqrt) of /g, 'sqrt '],
  [new RegExp(`sqrt ${number}`, 'g'), 'sqrt($1)'],
  [new RegExp(`${number}的平方根`, 'g'), 'sqrt($1)'],
  [new RegExp(`(?:the )?absolute value of ${number}`, 'g'), 'abs($1)'],
  [/ (?:squared)|的平方/g, ' ^ 2'],
  [/ (?:cubed)|的立方/g, ' ^ 3'],
  [/ (?:to the power of|raised to) |的次方/g, ' ^ '],
  [/ (?:divided by|over) |除以|÷/g, ' / '],
  [/ (?:multiplied by|times) |乘以|乘|[×✕]/g, ' * '],
  [/(?<=\d) ?x ?(?=\d)/g, ' * '],
  [/ (?:plus) |加上|加/g, ' + '],
  [/ (?:minus) |减去|减|[−–]/g, ' - '],
  [/ (?:modulo|mod) /g, ' % '],
  [new RegExp(`${number} ?(?:%|percent) of `, 'g'), '$1 / 100 * '],
]

const lists: readonly (readonly [RegExp, string])[] = [
  [/^(?:the )?(?:sum|total) of (.+)$|^(.+?)的(?:总和|和|合计)$/, 'sum'],
  [/^(?:the )?(?:average|mean) of (.+)$|^(.+?)的平均(?:值|数)?$/, 'avg'],
  [/^(?:the )?median of (.+)$|^(.+?)的中位数$/, 'median'],
  [
    /^(?:the )?(?:max|maximum|largest|highest|biggest)(?: number)? (?:of|among|in) (.+)$|^(.+?)(?:的|中)最大(?:值|数|的)?$/,
    'max',
  ],
  [
    /^(?:the )?(?:min|minimum|smallest|lowest)(?: number)? (?:of|among|in) (.+)$|^(.+?)(?:的|中)最小(?:值|数|的)?$/,
    'min',
  ],
]

const opening =
  /^(?:please |can you |could you |hi,? |hello,? )*(?:what(?:'s| is| are| would be| does)|calculate|compute|work out|evaluate|how much is|tell me|solve|find|add(?= \d)|请问|请?(?:帮我)?(?:计算一下|计算|算一下|求)|请)\s*/
const closing =
  /\s*(?:equals?|equal to|=|等于(?:多少|几)?|是(?:多少|几)|为多少|是什么|多少)?\s*[?？.。!！=]*\s*$/

const numbersOf = (text: string): string[] | null => {
  const parts = text.split(/\s*(?:, and |,\s|，|、|\band\b|和|与|&|;)\s*/).map((part) => part.trim())
  const good = parts.filter((part) => part !== '')
  return good.length > 1 && good.every((part) => /^-?[\d,]*\.?\d+$/.test(part))
    ? good.map((part) => part.replaceAll(',', ''))
    : null
}

const functionName = /\b(?:sum|avg|min|max|round|abs|sqrt|count|median)\b/g

/** The expression a question asks for when it is nothing but a sum, else null. */
export const readArithmetic = (question: string): string | null => {
  if (question.length > 2000 || !/\d/.test(question)) return null
  const text = question
    .trim()
    .toLowerCase()
    .replace(/[`"“”]/g, '')
    .replace(closing, '')
    .replace(opening, '')
    .replace(/^the (?=\d)/, '')
  for (const [pattern, name] of lists) {
    const m = pattern.exec(text)
    const numbers = m ? numbersOf((m[1] ?? m[2] ?? '').replace(/[，,](?=\d{1,2}(?:\D|$))/g, ', ')) : null
    if (numbers) return `${name}(${numbers.join(', ')})`
  }
  const bare = text
    .replace(/[$€£¥](?=\d)/g, '')
    .replace(/[（]/g, '(')
    .replace(/[）]/g, ')')
  for (const [pattern, expression] of forms)
    if (pattern.test(bare)) return bare.replace(pattern, expression).replace(/(?<=\d),(?=\d)/g, '')
  let sum = ` ${bare} `
  for (const [pattern, expression] of operators) sum = sum.replace(pattern, expression)
  sum = sum.replace(/(?<=\d),(?=\d{3}(?:\D|$))/g, (comma, at: number) =>
    /[a-z]\([^)]*$/.test(sum.slice(0, at)) ? comma : '',
  )
  sum = sum.replace(/\s+/g, ' ').trim()
  const rest = sum.replace(functionName, '')
  if (!/^[\d\s.,+\-*/%^()]+$/.test(rest) || !/[+\-*/%^(]/.test(sum)) return null
  if (/^\d{4}-\d{1,2}(?:-\d{1,2})?$/.test(sum) || !/\d\s*[)+\-*/%^,]|\(/.test(sum)) return null
  const opened = [...sum].filter((c) => c === '(').length
  return opened === [...sum].filter((c) => c === ')').length && !/[+\-*/%^(,]$/.test(sum) ? sum : null
}
