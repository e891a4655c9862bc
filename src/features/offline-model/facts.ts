import { titles } from '../../context/sections.ts'
import type { TextLanguage } from '../../state/text/text-language.ts'
import type { Finding } from './answers.ts'
import { linesOf, type OfflineRequest, partText } from './request.ts'
import { contentWords, hasHan, stem, stemsOf } from './words.ts'

/** Questions about the user, answered from the profile and the memories in the prompt. */

const name = String.raw`\p{Lu}[\p{L}'’-]*(?: \p{Lu}[\p{L}'’.-]*){0,3}`
const han = String.raw`\p{Script=Han}{2,4}`

/** What is asked for in one word and said in others: the first group of what says it is the value. */
const aspects: readonly { asks: RegExp; says: RegExp }[] = [
  {
    asks: /^(?:do you (?:know|remember) |what(?:'s| is) )?my (?:full )?name\b|^who am i\b|我叫(?:什么|啥)|我的?(?:名字|姓名)|我是谁[?？]?$/i,
    says: new RegExp(
      `(?:\\b[Mm]y name is|[Cc]all me|^The user is|(?:user|user's name) is(?: named)?) (${name}|${han})|我叫\\s*(${han})`,
      'u',
    ),
  },
  {
    asks: /\bwhere (?:do i live|am i (?:living|from|based))|我(?:现在)?住在?哪/i,
    says: new RegExp(
      `\\bI (?:now )?(?:live in|am based in|moved to|am from) ((?:the )?${name})|^The user is .*\\bin (${name})\\.$|我(?:现在)?(?:住在|搬到)了?(${han})`,
      'u',
    ),
  },
]

const question = /[?？]\s*$|^(?:what|who|when|where|which|how|do|does|did|am|is|tell me)\b|什么|谁|哪|几|吗/i
const personal = /\b(?:i|i'm|my|me|we|our)\b|我/i
const everything = /\b(?:know|remember)\b.{0,20}\b(?:about|of) me\b|(?:知道|记得|了解)(?:关于)?我/i
const earlierTalk = /\b(?:did we (?:talk|speak|discuss)|we (?:talked|spoke|discussed))\b|上次|之前(?:聊|谈)/i
const telling =
  /\b(?:my name is|call me|i am|i'm|i live|i work|i (?:\w+ )?(?:like|love|prefer|hate|speak|never|always)|remember that)\b|我(?:叫|是|住|喜欢|不喜欢|会)|记住/i
const task =
  /\bplease (?!call me|remember)|(?:^|[,.，。] *)(?:write|translate|fix|compute|calculate|explain)|请(?!记住|叫我)|帮我/i

const asking = new Set('am tell told say remember know about did do does have again now called 我'.split(' '))

/** Whether a question is about the user, so that no file answers it. */
export const isAboutUser = (text: string): boolean =>
  question.test(text) &&
  [everything, earlierTalk, ...aspects.map(({ asks }) => asks)].some((pattern) => pattern.test(text.trim()))

/** Whether a text says something of the user and asks for nothing. */
export const isTelling = (text: string): boolean =>
  telling.test(text) && !question.test(text.trim()) && !task.test(text)

/** The latest statement that answers a question about the user; null where none does. */
export const recallFact = (text: string, language: TextLanguage, request: OfflineRequest): Finding | null => {
  if (!question.test(text) || !personal.test(text)) return null
  const quote = (fact: string): string => (language === 'zh' ? `我记得：“${fact}”` : `I remember: "${fact}"`)
  const list = (facts: readonly string[]): Finding | null =>
    facts.length === 0
      ? null
      : { text: facts.map((fact) => `- ${quote(fact)}`).join('\n'), value: [...facts] }
  const memories = [titles.memory, titles.preferences].flatMap((title) => linesOf(partText(request, title)))
  const talks = memories.filter((memory) => memory.startsWith('Earlier talk, until ')).toReversed()
  const facts = memories.filter((memory) => !talks.includes(memory)).toReversed()
  const known = [...linesOf(partText(request, titles.user)), ...facts]
  if (earlierTalk.test(text)) return list(talks)
  if (everything.test(text)) return list(known.slice(0, 10))
  for (const { asks, says } of aspects)
    for (const fact of asks.test(text) ? known : []) {
      const value = says.exec(fact)?.slice(1).find(Boolean)
      if (value) return { text: `**${value}** (${quote(fact)})`, value }
    }
  const words = contentWords(text).filter((word) => !asking.has(word.toLowerCase()))
  const holds = (fact: string, word: string): boolean =>
    hasHan(word) ? fact.includes(word) : stemsOf(fact).includes(stem(word))
  const best = known.find((fact) => words.length > 0 && words.every((word) => holds(fact, word)))
  return best === undefined ? null : { text: quote(best), value: best }
}
