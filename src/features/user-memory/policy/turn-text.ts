import { cutText } from '../../../state/text/cut-text.ts'
import { estimateTokens } from '../../../state/text/tokens.ts'
import { extractWords } from '../../../state/text/words.ts'
import { findRejectionReason } from './rejection-rules.ts'

const promptTokens = 300
const answerTokens = 200
/** A turn of fewer content words says nothing without the turn before it. */
const minWords = 5

/** A turn as later sessions search it: what was asked and what was answered, neither of them with a secret in it. */
export type TurnText = { content: string; words: readonly string[]; isShort: boolean }

/** The text of an ended turn: the first 300 tokens of its prompt, then the first 200 of its answer. Null: nothing to be found by. */
export const toTurnText = (prompt: string, answer: string | null): TurnText | null => {
  const parts = [cutTokens(prompt, promptTokens), cutTokens(answer ?? '', answerTokens)]
  const content = parts
    .filter((part) => part !== '' && findRejectionReason(part, 'instruction') !== 'secret')
    .join('\n')
  const words = listContentWords(content)
  return words.length === 0 ? null : { content, words, isShort: words.length < minWords }
}

const cutTokens = (text: string, most: number): string => {
  const trimmed = text.trim()
  const tokens = estimateTokens(trimmed)
  return tokens <= most ? trimmed : cutText(trimmed, Math.floor((trimmed.length * most) / tokens))
}

/** Words of questions and requests about anything. */
const plainWords = new Set(
  `about after again all also any because before can could did don get got give go going how just know last let like make may me
  more most much many must need no not now one only other out over please say said see should show some something such take tell
  there these thing think those time too two up use very want where whose why would yes aber auch auf aus bei das dass dem den der
  des die du ein eine einen einer er es für hat ich im ist ja kann können mich mir mit nach nicht noch nur oder sich sie sind so
  über um und uns haben hatte hatten waren habe us von war was wenn wer wie wir wird wo zu zum zur 哪里 什么 怎么 多少 一下 可以 之前 那个 这个 是否 为什 么样 到哪`.split(
    /\s+/,
  ),
)

/** The words that a text is about, each once. */
export const listContentWords = (text: string): string[] => [
  ...new Set(extractWords(text).filter((word) => word.length > 1 && !plainWords.has(word))),
]
