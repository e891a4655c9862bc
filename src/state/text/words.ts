/** Texts as words: for full text, for the hashing embedding and for telling duplicates. English and Chinese alike. */

/** One form for texts that read the same: NFKC, lower case, straight quotes, single spaces. */
export const normalizeText = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[‘’`´]/g, "'")
    .replace(/[“”]/g, '"')
    .replace(/\s+/g, ' ')
    .trim()

const wordPattern = /\p{Script=Han}+|[\p{L}\p{N}][\p{L}\p{N}_]*/gu
const han = /^\p{Script=Han}/u

/** Words that say nothing of what a text is about. */
const stopWords = new Set(
  `a an and are as at be been but by do does for from had has have he her his i if in is it its me my of on or our s she
  so t than that the their them then they this to user users was we were what when which who will with would you your`.split(
    /\s+/,
  ),
)
/** The same in Chinese, which has no spaces: taken out before neighbours are paired. */
const stopWordsHan = /用户|我们|您|你|我|请|的|了|吗|呢|吧|啊/g

/** The plainest of stems: plurals and third persons meet their base form. */
const stem = (word: string): string =>
  word.length > 3 && word.endsWith('s') && !/(?:ss|us|is)$/.test(word) ? word.slice(0, -1) : word

/** Whether a text contains each word of a name or a value. A name of stop words only, such as Will, is searched as it is. */
export const containsWords = (text: string, value: string): boolean => {
  const wanted = extractWords(value)
  if (wanted.length === 0) return normalizeText(text).includes(normalizeText(value))
  const words = new Set(extractWords(text))
  return wanted.every((word) => words.has(word))
}

/** Pairs of neighbouring characters, by which text without spaces is compared; a single character stands alone. */
export const toPairs = (text: string): string[] => {
  const letters = [...text]
  if (letters.length < 2) return letters
  return letters.slice(1).map((letter, at) => `${letters[at]}${letter}`)
}

/** What is behind these characters of a text is not looked at. */
const maxReadChars = 128 * 1024

/** Words, and pairs of neighbours of Chinese; empty words left out. In order, with repeats; at most `most`. */
export const extractWords = (text: string, most = 2000): string[] => {
  const found: string[] = []
  for (const [word] of normalizeText(text.slice(0, maxReadChars)).matchAll(wordPattern)) {
    if (found.length >= most) break
    if (han.test(word)) found.push(...toPairs(word.replace(stopWordsHan, '')))
    // the cut may split a surrogate pair
    else if (!stopWords.has(word)) found.push(stem(word).slice(0, 64).toWellFormed())
  }
  return found.slice(0, most)
}
