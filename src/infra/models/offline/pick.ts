/** Superlatives, rankings and "top 3", read from the words of a question. */

export type Pick = {
  direction: 'max' | 'min'
  n: number
  counted: boolean
  time: boolean
  /** What there is most of: "the most orders". */
  noun: string
}

const numberWords = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten']
const hanDigits = '零一二三四五六七八九十'
const toNumber = (text: string | undefined): number => {
  if (!text) return 1
  const word = numberWords.indexOf(text.toLowerCase())
  const digit = word >= 0 ? word : hanDigits.indexOf(text)
  return digit > 0 ? digit : text === '两' ? 2 : Math.min(100, Math.max(1, Number(text) || 1))
}

export const counted = `(\\d{1,3}|${numberWords.slice(1).join('|')})`
const most =
  /\b(?:highest|largest|biggest|greatest|most|maximum|max|top|best|strongest|richest|longest|tallest|heaviest|oldest|latest|newest|most recent|last)\b|最大|最高|最多|最贵|最长|最新|最近|最晚|最好|最佳|最重|排名第一|前[\d一二三四五六七八九十两]+/i
const least =
  /\b(?:lowest|smallest|least|fewest|minimum|min|bottom|worst|weakest|poorest|shortest|cheapest|youngest|lightest|earliest|first|oldest date)\b|最小|最低|最少|最便宜|最短|最早|最差|最轻|倒数|垫底|后[\d一二三四五六七八九十两]+名/i
const inTime = /\b(?:latest|newest|most recent|earliest|last|first)\b|最新|最近|最晚|最早/i

/** "more than 100", "at most 5" are conditions, not superlatives. */
const withoutConditions = (raw: string): string =>
  raw.replace(
    /\b(?:at (?:most|least)|more than|less than|first (?:name|quarter|half)|last (?:name|quarter|year|month|week)|for the most part)\b|最多不超过|至少|至多/gi,
    (m) => ' '.repeat(m.length),
  )

/** Rankings show this many. */
const everyRow = 24
const sorting = /\b(?:sort|sorted|rank|ranked|ranking)\b|排序|排名(?!第)|从高到低|从低到高/i

export const readPick = (raw: string): Pick | null => {
  const text = withoutConditions(raw)
  const sorted = sorting.test(text)
  const up = /\bascending\b|\b(?:low|small)(?:est)? to|升序|从低到高|从小到大/i.test(text)
  const direction = sorted ? (up ? 'min' : 'max') : most.test(text) ? 'max' : least.test(text) ? 'min' : null
  if (!direction) return null
  const n =
    new RegExp(
      `\\b(?:top|bottom|highest|lowest|largest|smallest|best|worst|latest|newest|earliest|oldest|first|last|cheapest)[ -]${counted}\\b`,
      'i',
    ).exec(text) ??
    new RegExp(
      `\\b${counted} (?:most |least )?(?:highest|lowest|largest|smallest|best|worst|latest|newest|earliest|biggest|cheapest|expensive|recent|top|oldest)\\b`,
      'i',
    ).exec(text) ??
    /(?:前|后|最[大小高低多少新早贵]的?)\s*([\d]{1,3}|[一二三四五六七八九十两])/.exec(text) ??
    /([\d]{1,3}|[一二三四五六七八九十两])(?:个|名|条|笔|位)?最/.exec(text)
  const byCount =
    /\bmost (?:common|frequent|often|popular)\b|\b(?:least|fewest) (?:common|frequent|often)\b|次数最[多少]|最常见/i.test(
      text,
    )
  const noun =
    /\b(?:most|fewest|least)\s+([\p{L}_]+)/iu.exec(text)?.[1] ??
    /([\p{Script=Han}]{2})数?量?最[多少]/u.exec(text)?.[1] ??
    ''
  const ordinal =
    /\b(?:(second|2nd)|(third|3rd)|(fourth|4th)|(fifth|5th))[- ](?=\w*(?:est|most)\b)|第([二三四五])[大小高低多少]/i.exec(
      text,
    )
  const nth = ordinal
    ? ordinal[5]
      ? hanDigits.indexOf(ordinal[5])
      : ordinal.slice(1, 5).findIndex((word) => word) + 2
    : 0
  return {
    direction,
    n: sorted ? everyRow : nth || toNumber(n?.[1]),
    noun,
    counted: byCount,
    time: inTime.test(text),
  }
}
