import { sentencesOf } from '../../../state/memory/words.ts'
import type { Desk } from './desk.ts'
import type { Finding } from './figures.ts'
import { say } from './frames.ts'
import { aspects, isAbout, isQuestion } from './of-user.ts'
import type { Request } from './read-request.ts'
import { contentWords, hasHan, readText, shorten, stem } from './text.ts'

/** What the user asks of himself, answered with the statement that says it: from this talk, his profile or the memory. */

type From = 'talk' | 'profile' | 'memory'
type Known = { from: From; text: string }

const everything =
  /\b(?:what|everything|anything)\b.{0,20}\b(?:know|remember)\b.{0,20}\b(?:about|of) me\b|(?:知道|记得|了解)(?:关于)?我(?:的)?(?:什么|哪些)/i
/** An episode: what an earlier talk came to, which is no statement of the user's. */
const talked = /^Earlier talk, until \d/
const ofTalk =
  /\b(?:last time|left off|did we (?:talk|speak|discuss|say|do)|we (?:talked|spoke|discussed)|earlier talk)\b|上次|之前(?:聊|说|谈)/i
const personal = /\b(?:i|i'm|my|mine|me|myself|we|our)\b|我/i

const sentences = (text: string): string[] =>
  sentencesOf(text).filter((sentence) => sentence !== '' && sentence.length <= 300 && !isQuestion(sentence))

/** The latest word on a thing comes first. */
const knownOf = ({ conversation, prompt, memory, profile }: Request): Known[] => {
  const said = [...conversation.filter(({ role }) => role === 'user').map(({ text }) => text), prompt]
  const talk = said.flatMap(sentences).filter((sentence) => personal.test(sentence))
  return [
    ...talk.toReversed().map((text): Known => ({ from: 'talk', text })),
    ...profile.map((text): Known => ({ from: 'profile', text })),
    ...memory
      .filter((text) => !talked.test(text))
      .toReversed()
      .map((text): Known => ({ from: 'memory', text })),
  ]
}

const asking = new Set(
  'am tell told say said remind remember know about did do does have again still now called something 我 你 您 过'.split(
    ' ',
  ),
)

/** How many of the question's telling words a statement holds; all of them must be there when they are few. */
const overlap = (words: readonly string[], text: string): number => {
  const stems = new Set(readText(text).words.map((word) => word.stem))
  return words.filter((word) => (hasHan(word) ? text.includes(word) : stems.has(stem(word)))).length
}

const mostShown = 10

const told = (known: readonly Known[], { language }: Desk, value?: string): Finding => {
  const lines = known.map(({ from, text }) => say.remembered(language, from, shorten(text, 600)))
  const shown = lines.length === 1 ? (lines[0] ?? '') : lines.map((line) => `- ${line}`).join('\n')
  return value === undefined
    ? { text: shown, names: known.map(({ text }) => text) }
    : { text: `**${value}** (${shown})`, name: value }
}

/** The answer where the question is of the user himself and something that is known says it, else null. */
export const answerOfUser = (question: string, desk: Desk): Finding | null => {
  if (!isQuestion(question) || !personal.test(question)) return null
  const talks = ofTalk.test(question) ? desk.request.memory.filter((text) => talked.test(text)) : []
  if (talks.length > 0)
    return told(
      talks.map((text) => ({ from: 'memory', text })),
      desk,
    )
  const known = knownOf(desk.request).filter(({ text }) => text !== question)
  if (known.length === 0) return null
  for (const aspect of aspects) {
    if (!isAbout(aspect, question)) continue
    for (const one of known)
      for (const pattern of aspect.says) {
        const value = pattern.exec(one.text)?.[1]
        if (value) return told([one], desk, value.replace(/\.$/, ''))
      }
  }
  if (everything.test(question)) return told(known.slice(0, mostShown), desk)
  const words = contentWords(question).filter((word) => !asking.has(word.toLowerCase()))
  if (words.length === 0) return null
  const least = words.length <= 2 ? words.length : Math.ceil(words.length * 0.6)
  const scored = known.map((one) => ({ one, score: overlap(words, one.text) }))
  const most = Math.max(...scored.map(({ score }) => score))
  const best = scored.find(({ score }) => score === most)
  return best && most >= least ? told([best.one], desk) : null
}
