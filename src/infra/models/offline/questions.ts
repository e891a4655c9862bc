/** A prompt cut into the questions in it, so that each gets its own answer. */

const starters =
  "what(?:'s)?|which|who|whose|how|when|where|is|are|list|show|give|count|find|compare|calculate|compute|quote|tell|sum|name|does|do|also"
const hanStarters = '哪|多少|几|列出|找出|比较|计算|平均|最|总|各|每|有'

const aggregates = {
  en: 'total|sum|average|mean|median|minimum|maximum|min|max|highest|lowest|largest|smallest|cheapest|count|latest|earliest|newest|oldest',
  zh: '总和|合计|总计|平均值?|中位数|最大值?|最小值?|最高|最低|最新|最早',
}
/** After "and" or a comma a new question begins only with a question word, so that "between 1 and 2" stays whole. */
const joint = new RegExp(
  `(?:\\s*[,;]\\s*(?:and |then |also )?|\\s+and(?: also| then)? |\\s+then )(?=(?:${starters})\\b(?! \\w+ (?:and|or) ))`,
  'i',
)
/** "… and the best-selling product": a new question too, unless "average and the highest" share what follows. */
const second = `(?<!\\b(?:${aggregates.en}|compare|between|best|worst|top|\\d))\\s*,?\\s+and\\s+(?:the |their |its |our )?(?=(?:best|worst|top \\d|most |number of|${aggregates.en})\\b)`
const joints = new RegExp(`${joint.source}|${second}`, 'gi')
const hanJoint = new RegExp(
  `[，,；;](?:以及|并且|并|还有|同时|然后)?(?=[^，,；;]*(?:${hanStarters}))|(?:以及|并且|还有)(?=.*(?:${hanStarters}))`,
  'g',
)

const sentenceEnd = /(?<=[?？!！。；])\s*|(?<=[^\d\s][.;])\s+(?=[A-Z"'\p{Script=Han}])|\n+/gu

const several = {
  en: new RegExp(
    `\\b(?:${aggregates.en})(?:(?:\\s*,\\s*(?:and |the )?|\\s+and (?:the )?)(?:${aggregates.en}))+\\b`,
    'i',
  ),
  zh: new RegExp(`(?:${aggregates.zh})(?:(?:、|和|与|及|，)(?:${aggregates.zh}))+`),
}

/** "the average and maximum price" as two questions. */
const spread = (question: string): string[] => {
  for (const key of ['en', 'zh'] as const) {
    const m = several[key].exec(question)
    if (!m || /\bof\s+\d/.test(question)) continue
    const words = m[0].match(new RegExp(aggregates[key], 'gi')) ?? []
    return words.map((word) => question.slice(0, m.index) + word + question.slice(m.index + m[0].length))
  }
  return [question]
}

const mask = (text: string): string =>
  text.replace(/"[^"\n]*"|“[^”\n]*”|「[^」\n]*」/g, (quoted) => '\u0001'.repeat(quoted.length))

/** Cuts at the places a masked copy names, so that nothing is cut inside quotation marks. */
const cut = (text: string, pattern: RegExp): string[] => {
  const parts: string[] = []
  let at = 0
  for (const m of mask(text).matchAll(pattern)) {
    parts.push(text.slice(at, m.index))
    at = m.index + m[0].length
  }
  return [...parts, text.slice(at)].map((part) => part.trim()).filter((part) => part !== '')
}

const isRequest = (text: string): boolean => /[\p{L}\p{N}]/u.test(text)

const asksSomething = (text: string): boolean =>
  /[?？]|\b(?:what|which|who|how|list|count|sum|total|average|compare)\b|多少|哪|几|列出|平均|总/i.test(text)

/** An introduction without a question ("Here are our orders.", "Read the file and answer:") asks nothing by itself. */
const isPreamble = (text: string): boolean =>
  /^(?:(?:please|kindly|can you|could you) )*(?:here (?:is|are)|attached|this is|these are|i have|i've|we have|hi\b|hello\b|hey\b|thanks|thank you|answer|analy[sz]e|review|examine|check|read|look at|open|use|see|using|based on|given|from|以下|附件|这是|你好|谢谢|请回答|请阅读|根据)/i.test(
    text,
  ) && !asksSomething(text)

/** Long prompts ask at their beginning or end; what lies between is material. */
const within = (prompt: string): string =>
  prompt.length <= 20_000 ? prompt : `${prompt.slice(0, 6000)}\n${prompt.slice(-6000)}`

/** "In North" before a comma belongs to the question behind it. */
const joinOpenings = (parts: readonly string[]): string[] => {
  const joined: string[] = []
  let opening = ''
  for (const part of parts) {
    const whole = opening + part
    const isOpening =
      /^(?:(?:in|for|from|of|during|within|among|since|between|according to|based on)\b|在|根据)/i.test(
        part,
      ) &&
      !/[?？.。]$/.test(part) &&
      part.length < 120 &&
      !asksSomething(part)
    opening = isOpening ? `${whole} ` : ''
    if (!isOpening) joined.push(whole)
  }
  return opening === '' ? joined : [...joined, opening.trim()]
}

/** The questions of a prompt in order; at most 12, and the prompt itself when nothing else is found. */
export const splitQuestions = (prompt: string): string[] => {
  const sentences = cut(within(prompt), sentenceEnd).map((sentence) => sentence.slice(0, 1000))
  const parts = sentences
    .flatMap((sentence) => cut(sentence, joints))
    .flatMap((sentence) => (/\p{Script=Han}/u.test(sentence) ? cut(sentence, hanJoint) : [sentence]))
    .map((part) =>
      part.replace(/^(?:[-*•]|\d{1,2}[.)、])\s*/, '').replace(/^(?:and|also|then)\s+(?=\w+ \w+ )/i, (m) => m),
    )
    .filter(isRequest)
  const asked = joinOpenings(parts).filter((part) => !isPreamble(part))
  return (asked.length > 0 ? asked : parts.length > 0 ? parts : [prompt.trim().slice(0, 1000)])
    .flatMap(spread)
    .slice(0, 12)
}
