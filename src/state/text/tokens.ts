/** From here on scripts are written without letters: radicals, kana, ideographs, Hangul, and the halves of emoji. */
const firstWide = 0x2e80
const anyWide = /[\u2e80-\uffff]/

/** About how many tokens a text is: 4 characters each, 1.5 of Chinese, Japanese and Korean. An estimate, where no tokenizer is there. */
export const estimateTokens = (text: string): number => {
  // nearly all texts have none, which is quick to see
  if (!anyWide.test(text)) return Math.ceil(text.length / 4)
  let wide = 0
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) >= firstWide) wide++
  return Math.ceil((text.length - wide) / 4 + wide / 1.5)
}

/** The text if it is `max` tokens at most, else its start and end with a note of how much is left out between. */
export const fitTokens = (text: string, max: number): string => {
  // no character is less than a quarter of a token
  if (text.length <= max) return text
  const tokens = estimateTokens(text)
  if (tokens <= max) return text
  const kept = Math.max(0, Math.floor((text.length * max) / tokens) - noteLength)
  const head = text.slice(0, Math.ceil(kept * 0.7)).replace(/[\uD800-\uDBFF]$/, '')
  const tail = text.slice(text.length - Math.floor(kept * 0.3)).replace(/^[\uDC00-\uDFFF]/, '')
  return `${head}\n[cut: ${text.length - head.length - tail.length} characters left out here]\n${tail}`
}

const noteLength = 60
