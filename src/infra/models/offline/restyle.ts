/** The few styles rules can give a text. What a style asks beyond them is left alone. */

const withoutMarkdown = (text: string): string =>
  text
    .replace(/\*\*(.+?)\*\*/g, '$1')
    .replace(/^#{1,6}\s+/gm, '')
    .replace(/`([^`]+)`/g, '$1')

const sentences = (text: string): string[] =>
  text
    .split(/\n+|(?<=[.!?])\s+(?=[A-Z])|(?<=[。！？])/)
    .map((part) => part.trim())
    .filter((part) => part !== '')

/** The first lines that carry answers: nothing of the evidence below them. */
const short = (text: string): string =>
  text
    .split(/\n{2,}/)
    .map((block) =>
      (block.split('\n')[0] ?? '')
        .replace(/(?:\. |。)(?:Calculation: |计算：).*$/, '.')
        .replace(/ \(\d+ rows?: [^)]*\)/, ''),
    )
    .join('\n')

const bullets = (text: string): string =>
  text
    .split('\n')
    .flatMap((line) =>
      /^\s*(?:[-*]|\d+\.)\s|^\s*\|/.test(line) ? [line] : sentences(line).map((part) => `- ${part}`),
    )
    .join('\n')

/** A draft by the words of a style: short, bullet list, plain text, upper or lower case. */
export const restyle = (draft: string, style: string): string => {
  let text = draft
  if (/\b(?:short|brief|concise|terse|one (?:sentence|line)|no details)\b|简短|简洁|一句话/i.test(style))
    text = short(text)
  if (/\bbullets?\b|\blist\b|要点|列表/i.test(style)) text = bullets(text)
  if (/\bplain(?: text)?\b|\b(?:no|without) markdown\b|纯文本/i.test(style)) text = withoutMarkdown(text)
  if (/\bupper ?-?case\b|\bcapitals\b|大写/i.test(style)) text = text.toUpperCase()
  if (/\blower ?-?case\b|小写/i.test(style)) text = text.toLowerCase()
  return text
}
