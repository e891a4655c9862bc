import type { RuntimeState } from '../runtime-state.ts'
import { normalise, wordsOf } from './words.ts'

const enough = 0.6

/** Whether the user himself said this, in about these words: what came from a page, a file or a tool is not his. */
export const isSaidByUser = (
  state: Pick<RuntimeState, 'prompts' | 'chat_history'>,
  content: string,
): boolean => {
  const said = [
    ...state.prompts,
    ...state.chat_history.filter(({ role }) => role === 'user').map((one) => one.content),
  ]
  return isSaidIn(said, content)
}

/** The same of any texts: by itself, or with most of its words in one of them. */
export const isSaidIn = (texts: readonly string[], content: string): boolean => {
  const wanted = new Set(wordsOf(content))
  const plain = normalise(content)
  return texts.some((text) => {
    if (normalise(text).includes(plain)) return true
    const words = new Set(wordsOf(text))
    const found = [...wanted].filter((word) => words.has(word)).length
    return wanted.size > 0 && found / wanted.size >= enough
  })
}
