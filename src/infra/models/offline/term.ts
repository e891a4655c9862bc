/** What a question about lines looks for. */

export type Term = { words: string; exact: boolean }

const quoted = /["“「'‘]([^"”」'’\n]{1,200})["”」'’]/

const termPatterns: readonly RegExp[] = [
  /\bhow (?:often|many times) (?:does|do|is|are|did|was)\s+(?:the )?(?:word |term |phrase )?(.+?)\s+(?:appear|occur|mentioned|come|show|used|found|in)\b/i,
  /\b(?:what (?:does|do|did) .{1,60}? (?:say|state|tell|mention|write)s?(?: us| me)? (?:about|on|regarding))\s+(.+)$/i,
  /\b(?:mention(?:s|ed|ing)?(?: of)?|contain(?:s|ing)?|includ(?:e|es|ing)|regarding|concerning|match(?:es|ing)?|search(?: for)?|look for|occurrences? of|references? to|talk(?:s|ing)? about|refer(?:s|ring)? to|about|say|with)\s+(?:the )?(?:(?:word|term|phrase|string|text|keyword)s? )?(.+)$/i,
  /\b(?:find|quote|how many|count(?: the)?|list|show)\s+(?:me )?(?:all |the |every |any )*(?:lines? (?:of|on|for) )?(.+?)\s+(?:lines?|messages?|entries|log lines)\b/i,
  /(?:关于|有关|提到|提及|包含|含有|出现|搜索|查找|含)(?:了)?(?:有)?(.+?)(?:的|在文件|这个词|说了|，|。|？|\?|有|$)/,
]

const cleanTerm = (text: string): string =>
  text
    .replace(
      /\s+(?:in|from|of|within|inside)\s+(?:the |this |that |my |our |all )?(?:\S+\.\w{1,5}|(?:\w+ )?(?:files?|logs?|documents?|texts?|reports?|handbook|notes?|attachments?|contract|policy|lines?))\b.*$/i,
      '',
    )
    .replace(/\s+(?:are|is) there\b.*$/i, '')
    .replace(/^(?:the |any |a |an )+/i, '')
    .replace(/^(?:word|term|phrase|string|text|keyword)\s+/i, '')
    .replace(/[?？.。!！,，\s]+$/, '')
    .trim()

export const readTerm = (raw: string): Term | null => {
  const inQuotes = quoted.exec(raw)?.[1]
  if (inQuotes) return { words: inQuotes.trim(), exact: true }
  for (const pattern of termPatterns) {
    const words = cleanTerm(pattern.exec(raw)?.[1] ?? '')
    if (words !== '' && !/^(?:lines?|it|them|this|that)$/i.test(words))
      return { words, exact: /^[A-Z][A-Z0-9_-]+$/.test(words) }
  }
  return null
}
