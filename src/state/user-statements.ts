import type { RuntimeState } from './runtime-state.ts'
import { extractWords, normalizeText } from './text/words.ts'

const minSharedWords = 0.6

/** Whether the user said this, in about these words. Text of a page, a file or a tool is not theirs. */
export const isStatedByUser = (
  state: Pick<RuntimeState, 'prompts' | 'chat_history'>,
  content: string,
): boolean => {
  const said = state.chat_history.filter(({ role }) => role === 'user').map((one) => one.content)
  return isStatedIn([...state.prompts, ...said], content)
}

/** The same of any texts: by itself, or with most of its words in one of them. */
export const isStatedIn = (texts: readonly string[], content: string): boolean => {
  const wanted = new Set(extractWords(content))
  const plain = normalizeText(content)
  return texts.some((text) => {
    if (normalizeText(text).includes(plain)) return true
    const words = new Set(extractWords(text))
    const found = [...wanted].filter((word) => words.has(word)).length
    return wanted.size > 0 && found / wanted.size >= minSharedWords
  })
}
