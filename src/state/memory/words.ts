/** Texts as words: for full text, for the hashing embedding and for telling duplicates. English and Chinese alike. */

/** One form for texts that read the same: NFKC, lower case, straight quotes, single spaces. */
export const normalise = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[‘’`´]/g, "'")
    .replace(/[“”]/g, '"')
    .replace(/\s+/g, ' ')
    .trim()

/** English and Chinese sentences and lines, trimmed; blank ones stay, so that places count. */
export const sentencesOf = (text: string): string[] =>
  text.split(/(?<=[.!?])\s+|(?<=[。！？；])|\n+/).map((sentence) => sentence.trim())

const run = /\p{Script=Han}+|[\p{L}\p{N}][\p{L}\p{N}_]*/gu
const han = /^\p{Script=Han}/u

/** Words that say nothing of what a text is about. */
const empty = new Set(
  `a an and are as at be been but by do does for from had has have he her his i if in is it its me my of on or our s she
  so t than that the their them then they this to user users was we were what when which who will with would you your`.split(
    /\s+/,
  ),
)
/** The same in Chinese, which has no spaces: taken out before neighbours are paired. */
const emptyHan = /用户|我们|您|你|我|请|的|了|吗|呢|吧|啊/g

/** The plainest of stems: plurals and third persons meet their base form. */
const stem = (word: string): string =>
  word.length > 3 && word.endsWith('s') && !/(?:ss|us|is)$/.test(word) ? word.slice(0, -1) : word

/** Whether each word of a name or a value stands in a text. One such as Will has no word that counts: it is looked for as it stands. */
export const holdsWords = (text: string, value: string): boolean => {
  const wanted = wordsOf(value)
  if (wanted.length === 0) return normalise(text).includes(normalise(value))
  const words = new Set(wordsOf(text))
  return wanted.every((word) => words.has(word))
}

const pairsOf = (text: string): string[] => {
  const letters = [...text]
  if (letters.length < 2) return letters
  return letters.slice(1).map((letter, at) => `${letters[at]}${letter}`)
}

/** Words, and pairs of neighbours of Chinese; empty words left out. In order, with repeats; at most `most`. */
export const wordsOf = (text: string, most = 2000): string[] => {
  const found: string[] = []
  for (const [word] of normalise(text).matchAll(run)) {
    if (found.length >= most) break
    if (han.test(word)) found.push(...pairsOf(word.replace(emptyHan, '')))
    else if (!empty.has(word)) found.push(stem(word).slice(0, 64))
  }
  return found.slice(0, most)
}
