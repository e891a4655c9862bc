import { asksFigure } from './words.ts'

/** A prompt cut into its questions, so that each gets its own answer. */

const starters = "what(?:'s)?|which|who|how|when|where|list|show|give|count|find|calculate|compute|tell"
const figures = 'total|average|highest|lowest|largest|smallest|best|top \\d|most |number of'
const joints = new RegExp(
  `(?<!\\s)(?:\\s*[,;])?\\s+(?:and|then|also)\\s+(?:the )?(?=(?:${starters}|${figures})\\b)|[,;]\\s*(?=(?:${starters})\\b)|[，,；;](?:以及|并且|还有)?(?=[^，,；;]*(?:哪|多少|几|列出|平均|最|总))`,
  'gi',
)
const sentenceEnd = /(?<=[?？!！。；])\s*|(?<=[^\d\s][.;])\s+(?=[A-Z\p{Script=Han}])|\n+/gu
const preamble =
  /^(?:here (?:is|are)|attached|this is|these are|hi\b|hello\b|thanks|answer|analy[sz]e|read|look at|use|based on|以下|附件|你好|谢谢|根据)(?!.*[?？])/i
/** "In North" belongs to the question behind the comma. */
const opening = /^(?:in|for|from|during|between|among|在|根据)\b[^?？]{0,80}$/i
const mostQuestions = 8
const question = new RegExp(`^(?:${starters})\\b|[?？!！。；:：]$|什么|谁|吗`, 'i')

/** The parts of one sentence. "Excluding returns" asks nothing: it is part of the question behind it. */
const splitSentence = (sentence: string): string[] => {
  const parts: string[] = []
  let open = ''
  for (const part of sentence.split(joints)) {
    const whole = open + part
    const isOpen = !asksFigure(whole) && !question.test(whole.trim()) && !preamble.test(whole)
    if (!isOpen) parts.push(whole)
    open = isOpen ? `${whole}, ` : ''
  }
  return open === '' ? parts : [...parts, open.slice(0, -2)]
}

/** Whether two questions, one after the other, are of one sentence: the later may leave out what the earlier says. */
export const isSameSentence = (prompt: string, before: string, later: string): boolean => {
  const between = prompt.slice(prompt.indexOf(before) + before.length, prompt.indexOf(later))
  return !/[?？!！。；.]$/.test(before) && !between.includes('\n')
}

/** The questions of a prompt in order; the prompt itself where it has none. */
export const splitQuestions = (prompt: string): string[] => {
  const text = prompt.length <= 12_000 ? prompt : `${prompt.slice(0, 4000)}\n${prompt.slice(-4000)}`
  const parts = text
    .split(sentenceEnd)
    .flatMap((sentence) => (/["“]/.test(sentence) ? [sentence] : splitSentence(sentence)))
    .map((part) => part.trim().slice(0, 600))
    .filter((part) => /[\p{L}\p{N}]/u.test(part))
  const joined = parts.flatMap((part, at) => {
    if (opening.test(part) && at + 1 < parts.length) return []
    const before = parts[at - 1]
    return [before !== undefined && opening.test(before) ? `${before} ${part}` : part]
  })
  const asked = joined.filter((part) => !preamble.test(part))
  return (asked.length > 0 ? asked : [prompt.trim().slice(0, 600)]).slice(0, mostQuestions)
}
