import { counted, type Pick, readPick } from './pick.ts'
import { readTerm, type Term } from './term.ts'
import { hasHan, type Language, languageOf, readText, type Text } from './text.ts'

/** What a question asks, read from its words alone, before any file is looked at. */

export type Aggregate = 'sum' | 'avg' | 'median' | 'min' | 'max' | 'count'
type Manner =
  | 'figure'
  | 'list'
  | 'share'
  | 'compare'
  | 'lookup'
  | 'lines'
  | 'count_lines'
  | 'describe'
  | 'greeting'
  | 'writing'
export type Asked = {
  text: Text
  language: Language
  manner: Manner
  aggregate: Aggregate | null
  pick: Pick | null
  distinct: boolean
  /** "10% of the total": the part of the figure that is asked for, in percent. */
  percent: number | null
  /** Words after "by", "per", "for each": what to group by. */
  groupPhrases: readonly string[]
  /** Words after "how many", "which", "top 3", "list": what is counted or named. */
  subject: string
  /** What lines are to be found, for `lines` and `count_lines`. */
  term: Term | null
  /** All files together, each file by itself, or the one that fits. */
  scope: 'all' | 'one'
  /** A follow-up: "and in South?", "what about the average?", "how many of those". */
  elliptical: boolean
}

const readAggregate = (raw: string): Aggregate | null => {
  if (/\b(?:average|mean|avg)\b|平均|均值/i.test(raw)) return 'avg'
  if (/\bmedian\b|中位数/i.test(raw)) return 'median'
  if (
    /\bhow many\b|\bnumber of\b|\bcount\b|多少(?:个|条|笔|人|行|次|家|种|名|位|单|项|款|张|份)|[几](?:个|条|笔|人|行|次|家|种|名|位|单|项|款|张|份)|个数|条数|人数|笔数|有多少/i.test(
      raw,
    )
  )
    return 'count'
  if (
    /\b(?:total|sum|overall|altogether|combined|add up|in all)\b|总和|总计|合计|总共|总额|一共|总数|总销|总金额|总收入|总量|求和|总的|之和|总[\p{Script=Han}]{1,4}(?:是|为)?多少/iu.test(
      raw,
    )
  )
    return 'sum'
  if (/\bhow much\b/i.test(raw)) return 'sum'
  return null
}

const groupPatterns: readonly RegExp[] = [
  /\b(?:group(?:ed)? by|broken down by|breakdown by|split by|for each|for every|in each|of each|each|every|per|by)\s+(?:the\s+)?((?:[\p{L}\p{N}_]+[ -]?){1,3})/giu,
  /按照?(.{1,8}?)(?:统计|汇总|分组|分类|计算|列出|的|来|分|，|,|。|？|\?|$)/g,
  /(?:每个?|各个?)(.{1,6}?)(?:的|有|卖|买|售|共|多少|几|一共|总|平均|最|销|是|，|,|？|\?|$)/g,
]

const subjectPatterns: readonly RegExp[] = [
  /\bhow (?:many|much)\s+(?:different |distinct |unique )?((?:[\p{L}\p{N}_-]+ ?){1,3})/iu,
  /\b(?:number|count) of\s+(?:different |distinct |unique |all )?(?:the )?((?:[\p{L}\p{N}_-]+ ?){1,3})/iu,
  /\b(?:best|worst|top|most|least)[- ](?:selling|sold|performing|profitable|active|valuable|ordered|bought) ([\p{L}_-]+)/iu,
  /\b(?:best|worst|top|biggest|weakest|strongest) (?!\d)([\p{L}_-]+)/iu,
  /\b(?:most|least) (?:common|frequent|popular|often \w+) ((?:[\p{L}_-]+ ?){1,2})/iu,
  new RegExp(`\\b(?:top|bottom|first|last)[ -]${counted}\\s+(?<s>(?:[\\p{L}_-]+ ?){1,2})`, 'iu'),
  /\b(?:which|what|whose)\s+((?!is\b|are\b|was\b|were\b|does\b|do\b|did\b|share|percent|proportion|the\b)(?:[\p{L}_-]+ ?){1,3})/iu,
  /\b(?:list of|list|show|give me a list of|give me|display|print|name|find|get)\s+(?:me )?(?:all |every |the |any |different |distinct |unique )*((?:[\p{L}_-]+ ?){1,3})/iu,
  /\b([\p{L}_]+) with (?:the )?(?:highest|lowest|most|largest|biggest|smallest|fewest|least|best|worst|greatest|top)\b/iu,
  /前\s*[\d一二三四五六七八九十两]+\s*(?:个|名|位|条|笔|大|家|款)?([\p{Script=Han}]{2,4})/u,
  /(?:哪个|哪些|哪一个|哪位|哪家|哪种|哪款|哪一天|哪天|几个|多少个|多少种|多少家|多少名|列出(?:所有|全部)?(?:的)?)([\p{Script=Han}A-Za-z_]{1,6})/u,
  /多少(?:个|条|笔|件|份|位|名)?(?!行|钱)([\p{Script=Han}]{2}?)(?:[退被是已未在的了有还数没？?。]|$)/u,
  /([\p{Script=Han}]{1,4})(?:是哪个|有哪些|是哪一个|有多少|有几)/u,
]

const aboutLines =
  /\blines?\b.*\b(?:mention|contain|includ|about|with|say|match|have|refer|where|that)|\bquote\b|\bwhat (?:does|do|did) .{1,60}? (?:say|state|tell|mention|write)|\b(?:search|look) for\b|\boccurrences?\b|\bhow (?:often|many times)\b|\bpassages?\b|\b(?:paragraph|sentence)s? (?:about|on|that|mention)|\bmentions? of\b|\b(?:error|warning|info|debug|\w+) (?:log )?lines\b|\bwhere .{1,40} mentioned\b|(?:关于|提到|提及|包含|含有|出现).{1,30}(?:行|内容|句|地方|次|段)|(?:行|内容|句子?)(?:提到|包含|含有|出现)|文件.{0,6}(?:提到|说了|怎么说|写了)|引用|原文/i
const writing =
  /\b(?:write|compose|draft|translate|rewrite|explain why|brainstorm|poem|story|essay|joke|imagine|code|program|suggest|recommend|advise|design|invent|generate|predict|forecast|why)\b|翻译|写一|写篇|作诗|诗|故事|解释为什么|为什么|建议|推荐|预测|编写/i
const description =
  /\b(?:summari[sz]e|summary|overview|describe|outline|what(?:'s| is) (?:in|inside)|what (?:columns|fields|data|information)|which (?:columns|fields)|columns (?:are|does)|structure of)\b|概括|总结|概述|摘要|描述|有哪些(?:列|字段)|文件里有什么|什么内容/i
const sizeOfFile =
  /\bhow many (?:lines|rows|records|columns|entries)\b(?!.*\b(?:mention|contain|with|where|have|that|about)\b)|(?:多少|几)(?:行|列)(?!.*(?:提到|包含|含有|出现))/i

const readManner = (raw: string, term: Asked['term']): Manner => {
  if (
    /^(?:hi|hello|hey|good (?:morning|evening|day)|thanks?|thank you|你好|您好|谢谢|嗨)\b|^(?:你好|您好|谢谢|嗨)|\b(?:who|what) are you\b|what can you do|你是谁|你能做什么/i.test(
      raw.trim(),
    )
  )
    return 'greeting'
  if (aboutLines.test(raw) && term !== null)
    return /\bhow (?:many|often)\b|\bcount\b|\bnumber of\b|多少|几[行次处]|次数/i.test(raw)
      ? 'count_lines'
      : 'lines'
  if (sizeOfFile.test(raw)) return 'figure'
  if (/率(?:是|为|有|$|？|\?)/.test(raw)) return 'share'
  if (
    /\b(?:bigger|larger|higher|greater|smaller|lower|better|worse|more|less|fewer) than (?!\W?\d)/i.test(raw)
  )
    return 'compare'
  if (
    /\b(?:percentage|what percent|(?<!\d )percent|share|proportion|fraction)\b|占比|百分比|比例|占.{0,6}(?:多少|几)/i.test(
      raw,
    )
  )
    return 'share'
  if (
    /\b(?:compare|comparison|minus|versus|vs\.?|difference between|differ)\b|比较|对比|相差|差多少|差额/i.test(
      raw,
    )
  )
    return 'compare'
  if (writing.test(raw)) return 'writing'
  if (description.test(raw)) return 'describe'
  if (
    /\b(?:list|show|display|print|which .* (?:are|were|have|had)|give me (?:all|the)|find all|what are the|names? of|unique|distinct)\b|列出|显示|找出|哪些|有什么/i.test(
      raw,
    )
  )
    return 'list'
  return 'figure'
}

const trailing =
  /\s+(?:in|of|from|are|is|was|were|have|has|had|did|do|does|by|with|that|there|sold|on|for|where|and|or|per|we|to|the)\b.*$/i

const readSubject = (raw: string): string => {
  for (const pattern of subjectPatterns) {
    const m = pattern.exec(raw)
    const phrase = (m?.groups?.s ?? m?.[1] ?? '').replace(trailing, '').trim()
    if (phrase !== '') return phrase
  }
  return /\bwho\b|谁/i.test(raw) ? 'who' : ''
}

const startsAsFollowUp =
  /^(?:and\b(?! then)|what about|how about|same (?:for|with)|also\b|only\b|just\b|now\b|but\b|那|还有|再)|呢[？?]?$/i
const pointsBack =
  /\b(?:of|among) (?:those|these|them)\b|\b(?:their|those|these|they|them)\b|其中|这些|那些|它们/i

/** Everything the words say; a question that says nothing known is a `figure` without aggregate or pick. */
export const readIntent = (question: string): Asked => {
  const raw = question.trim()
  const term = readTerm(raw)
  const manner = readManner(raw, term)
  const groups = groupPatterns.flatMap((pattern) =>
    [...raw.matchAll(pattern)].map((m) => (m[1] ?? '').trim()),
  )
  return {
    text: readText(raw),
    language: languageOf(raw),
    manner,
    aggregate: readAggregate(raw),
    pick: readPick(raw),
    percent:
      Number(
        /(\d+(?:\.\d+)?)\s*(?:%|percent) of (?:the |our |my )?(?=\D)/i.exec(raw)?.[1] ??
          /的(\d+(?:\.\d+)?)\s*%/.exec(raw)?.[1],
      ) || null,
    distinct: /\b(?:distinct|different|unique)\b|[多几][少]?种|不同|去重/i.test(raw),
    groupPhrases: groups.filter((phrase) => phrase !== ''),
    subject: readSubject(raw),
    term,
    scope:
      /\b(?:all|both|each|every|across)(?: of)?(?: the| my| these)?(?: \w+)? files\b|所有文件|两个文件|全部文件|每个文件/i.test(
        raw,
      )
        ? 'all'
        : 'one',
    elliptical:
      startsAsFollowUp.test(raw) || (pointsBack.test(raw) && !hasHan(raw)) || /其中|这些|那些|它们/.test(raw),
  }
}
