import type { Desk } from './desk.ts'
import type { Finding } from './figures.ts'
import { say } from './frames.ts'
import type { Request } from './read-request.ts'
import { contentWords, hasHan, readText, shorten, stem } from './text.ts'

/** What the user asks of himself, answered with the statement that says it: from this talk, his profile or the memory. */

type From = 'talk' | 'profile' | 'memory'
type Known = { from: From; text: string }

const name = String.raw`\p{L}[\p{L}'’-]*(?: \p{Lu}[\p{L}'’.-]*){0,3}`

/** What is asked for in one word and said in others: the first group of what says it is the value. */
const aspects: readonly { asks: RegExp; says: readonly RegExp[] }[] = [
  {
    asks: /\bmy (?:first |last |full )?name\b|\bwho am i\b|\bam i called\b|我叫(?:什么|啥)|我的(?:名字|姓名)|我是谁/i,
    says: [
      new RegExp(`\\b(?:[Mm]y name(?: is|'s)|(?:I am|I'm) called|[Cc]all me) (${name})`, 'u'),
      /(?:我叫|我的名字[是叫])\s*(\p{Script=Han}{2,4}|[A-Za-z][\w-]*)/u,
      /^The user is (\p{Lu}[\p{L}'’-]*(?: \p{Lu}[\p{L}'’.-]*){0,3})/u,
    ],
  },
  {
    asks: /\bwhere (?:do|am) i (?:live|living|from|based|located)\b|\bmy (?:home ?town|location)\b|我(?:现在)?(?:住|家)在?(?:哪|什么地方)/i,
    says: [
      new RegExp(`\\bI (?:now )?(?:live in|am based in|(?:have )?moved to|am from) (${name})`, 'u'),
      /我(?:现在)?(?:住在|搬到|搬去)了?(\p{Script=Han}{2,10}?)了?(?=[，。,.！!\s]|$)/u,
      new RegExp(`^The user is .*\\bin (${name})\\.$`, 'u'),
    ],
  },
]

const ofMemory =
  /\b(?:know|remember)\b.{0,20}\b(?:about|of) me\b|\b(?:did|have) i (?:tell|told|say|said|mention)|\bremind me\b|(?:知道|记得|了解)(?:关于)?我|我(?:说过|告诉过|提过)/i
const everything =
  /\b(?:what|everything|anything)\b.{0,20}\b(?:know|remember)\b.{0,20}\b(?:about|of) me\b|(?:知道|记得|了解)(?:关于)?我(?:的)?(?:什么|哪些)/i
/** An episode: what an earlier talk came to, which is no statement of the user's. */
const talked = /^Earlier talk, until \d/
const ofTalk =
  /\b(?:last time|left off|did we (?:talk|speak|discuss|say|do)|we (?:talked|spoke|discussed)|earlier talk)\b|上次|之前(?:聊|说|谈)/i
const asks =
  /[?？]\s*$|^(?:what|who|whom|whose|when|where|which|why|how|do|does|did|am|is|are|can|could|will|tell me|remind me)\b|什么|谁|哪|几|吗|多少/i
const personal = /\b(?:i|i'm|my|mine|me|myself|we|our)\b|我/i
const telling =
  /\b(?:my name is|call me|i am|i'm|i live|i work|i (?:\w+ )?(?:like|love|prefer|hate|speak|never|always)|my [\w -]{1,40} (?:is|are)|remember that)\b|我(?:叫|是|住|喜欢|不喜欢|在|会)|记住/i

/** A question that only memory can answer, whatever files there are. */
export const isAskedOfMemory = (question: string): boolean =>
  asks.test(question) &&
  (ofMemory.test(question) || ofTalk.test(question) || aspects.some((aspect) => aspect.asks.test(question)))

/** The user says something of himself and asks nothing. */
export const isToldOfUser = (text: string): boolean => !asks.test(text.trim()) && telling.test(text)

const sentences = (text: string): string[] =>
  text
    .split(/(?<=[.!?])\s+|(?<=[。！？；])|\n+/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '' && sentence.length <= 300 && !asks.test(sentence))

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
  'am tell told say said remind remember know about did do does have again still now called something'.split(
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
  if (!asks.test(question) || !personal.test(question)) return null
  const talks = ofTalk.test(question) ? desk.request.memory.filter((text) => talked.test(text)) : []
  if (talks.length > 0)
    return told(
      talks.map((text) => ({ from: 'memory', text })),
      desk,
    )
  const known = knownOf(desk.request).filter(({ text }) => text !== question)
  if (known.length === 0) return null
  for (const aspect of aspects) {
    if (!aspect.asks.test(question)) continue
    for (const one of known)
      for (const pattern of aspect.says) {
        const value = pattern.exec(one.text)?.[1]
        if (value) return told([one], desk, value)
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
