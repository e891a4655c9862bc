import { asksFigure } from './words.ts'

/** A prompt cut into its questions, so that each gets its own answer. */

const starters = "what(?:'s)?|which|who|how|when|where|list|show|give|count|find|calculate|compute|tell"
const figures = 'total|average|highest|lowest|largest|smallest|best|top \\d|most |number of'
const joints = new RegExp(
  `(?<!\\s)(?:\\s*[,;])?\\s+(?:and|then|also)\\s+(?:the )?(?=(?:${starters}|${figures})\\b)|[,;]\\s*(?=(?:${starters})\\b)|[，,；;](?:以及|并且|还有)?(?=[^，,；;]*(?:哪|多少|几|列出|平均|最|总))`,
  'gi',
)
const sentenceEnd = /(?<=[?？!！。；])\s*|(?<=[^\d\s]\.)\s+(?=[A-Z\p{Script=Han}])|\n+/gu
const preamble =
  /^(?:here (?:is|are)|attached|this is|these are|hi\b|hello\b|thanks|answer|analy[sz]e|read|look at|use|based on|以下|附件|你好|谢谢|根据)(?!.*[?？])/i
/** "In North" belongs to the question behind the comma. */
const opening = /^(?:in|for|from|during|between|among|在|根据)\b[^?？]{0,80}$/i
const mostQuestions = 8
/** Words and signs of a question, or of what asks for something. */
const asking = new RegExp(`^(?:${starters})\\b|[?？!！。；:：]$|什么|谁|吗`, 'i')

/** A question, with the one before it in its sentence: it may leave out what that says. */
export type AskedQuestion = { question: string; before: string }

/** "Excluding returns" and "For the best region" ask nothing: they are part of the question behind them. */
const isOpen = (part: string): boolean =>
  !asking.test(part) && !preamble.test(part) && (opening.test(part) || !asksFigure(part))

/** The questions of a prompt in order; the prompt itself where it has none. */
export const splitQuestions = (prompt: string): AskedQuestion[] => {
  const text = prompt.length <= 12_000 ? prompt : `${prompt.slice(0, 4000)}\n${prompt.slice(-4000)}`
  const groups: { parts: string[]; sentence: number }[] = []
  let open = false
  for (const [sentence, words] of text.split(sentenceEnd).entries()) {
    const cut = /["“]/.test(words) ? [words] : words.split(joints)
    for (const part of cut.map((one) => one.trim()).filter((one) => /[\p{L}\p{N}]/u.test(one))) {
      const last = groups.at(-1)
      if (open && last) {
        last.parts.push(part)
        last.sentence = sentence
      } else groups.push({ parts: [part], sentence })
      open = isOpen(part)
    }
    open &&= opening.test(groups.at(-1)?.parts.join(', ') ?? '')
  }
  const asked = groups
    .map(({ parts, sentence }) => ({ question: parts.join(', ').slice(0, 600), sentence }))
    .filter((group) => !preamble.test(group.question))
  if (asked.length === 0) return [{ question: prompt.trim().slice(0, 600), before: '' }]
  return asked.slice(0, mostQuestions).map(({ question, sentence }, at) => {
    const last = asked[at - 1]
    return { question, before: last?.sentence === sentence ? last.question : '' }
  })
}
