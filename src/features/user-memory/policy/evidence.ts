/** What shows that a user said something: a sentence of their own message, verbatim. */

declare const verbatim: unique symbol
/** A sentence of a user's message. Only this file makes one, so that nothing is remembered without. */
export type Evidence = string & { readonly [verbatim]: true }

const maxTextChars = 100_000
const maxEvidenceChars = 1000

/** One form for texts that differ only in Unicode form and white space. Lines stay apart, since a line ends a sentence. */
const toLines = (text: string): string =>
  text
    .normalize('NFKC')
    .replace(/[^\S\n]+/g, ' ')
    .replace(/ ?\n[ \n]*/g, '\n')
    .trim()

/** The same on one line: characters keep their positions. */
const toLine = (text: string): string => toLines(text).replaceAll('\n', ' ')

const letter = /[\p{L}\p{N}]/u
/** Letters of scripts that write words with spaces. */
const spaced =
  /(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}ー])[\p{L}\p{N}]/u

const splitsWord = (text: string, at: number): boolean =>
  spaced.test(text.charAt(at - 1)) && spaced.test(text.charAt(at))

/** Where a text has a quote that begins and ends with whole words; -1: nowhere. */
const findWhole = (text: string, quote: string): number => {
  let at = text.indexOf(quote)
  while (at >= 0 && (splitsWord(text, at) || splitsWord(text, at + quote.length)))
    at = text.indexOf(quote, at + 1)
  return at
}

const short = /(?:^|[\s.(])(?:[\p{Lu}\p{Ll}]|Dr|Prof|Mrs?|Ms|(?<![\p{Lu}\d]\p{L}{0,20} )St|Nr|ca|bzw)\. ?$/u
const ordinal = /(?:^|[\s.(])\d{1,2}\. ?$/
/** Of a month in digits: "am 14. 10. 2026". */
const dayBefore = /(?:^|[\s(])(?:am|vom|zum|bis|seit|ab|de[nmr]) (?:\d{1,2}\. ?)?\d{1,2}\. ?$/iu
const month =
  /^(?:\d|(?:jan(?:uary?)?|feb(?:ruary?)?|mar(?:ch)?|märz?|apr(?:il)?|ma[iy]|jun[ei]?|jul[iy]?|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)(?!\p{L}))/iu

/** The sentences of a text with their positions; an initial ("K. "), what is shortened ("z. B. ") and the day of a date ("am 14. Oktober") end none. */
const listSentences = (lines: string): { start: number; text: string }[] => {
  const sentences: { start: number; text: string }[] = []
  for (const { index, segment } of new Intl.Segmenter('en', { granularity: 'sentence' }).segment(lines)) {
    const last = sentences.at(-1)
    const end = last?.text.slice(-30) ?? ''
    const day = /^\d/.test(segment) ? dayBefore : ordinal
    if (last && (short.test(end) || (day.test(end) && month.test(segment)))) last.text += segment
    else sentences.push({ start: index, text: segment })
  }
  return sentences
}

/** The sentences that have a part of the quote; where they are too long, the quote. */
const toWholeSentences = (lines: string, at: number, quote: string): string => {
  const from = Math.max(0, at - maxEvidenceChars)
  const sentences = listSentences(lines.slice(from, at + quote.length + maxEvidenceChars))
  const touched = sentences.filter(
    ({ start, text }) => from + start < at + quote.length && from + start + text.length > at,
  )
  const whole = toLine(touched.map(({ text }) => text).join(''))
  return whole.length > maxEvidenceChars ? quote : whole
}

/** Reads texts once; a call gives the sentence that has a quote verbatim, except for white space and Unicode form, or null. */
export const createEvidenceSearch = (texts: readonly string[]): ((quote: string) => Evidence | null) => {
  const read = texts.map((text) => {
    const lines = toLines(text.slice(0, maxTextChars))
    return { lines, line: lines.replaceAll('\n', ' ') }
  })
  return (quote) => {
    const wanted = toLine(quote.slice(0, 2 * maxEvidenceChars))
    if (wanted.length > maxEvidenceChars || !letter.test(wanted)) return null
    for (const { lines, line } of read) {
      const at = findWhole(line, wanted)
      if (at >= 0) return toWholeSentences(lines, at, wanted) as Evidence
    }
    return null
  }
}

/** Whether a value is in a sentence as it is, in whole words. */
export const hasVerbatim = (evidence: string, value: string): boolean =>
  findWhole(evidence, toLine(value)) >= 0

const addresses = /(?<![\w.+-])[\w.+-]+@[\w.-]{3,255}|https?:\/\/[^\s，。、）)]{3,500}/gi
/** Numbers of three digits or more, without the marks between thousands. */
const listFigures = (text: string): string[] =>
  text.replace(/(?<=\d)[.,'’ ](?=\d{3})/g, '').match(/\d{3,}/g) ?? []

/** Whether a statement names an address or a number that its evidence does not have: then it comes from somewhere else. */
export const addsFigures = (evidence: Evidence, content: string): boolean => {
  const [said, kept] = [evidence.toLowerCase(), toLine(content).toLowerCase()]
  const figures = listFigures(said)
  const isNew = (address: string): boolean => !said.includes(address.replace(/(?<![.,;:!?])[.,;:!?]+$/, ''))
  return (kept.match(addresses) ?? []).some(isNew) || listFigures(kept).some((one) => !figures.includes(one))
}

/** A greeting or "remember that" before a statement. */
const opening =
  /^(?:(?:hello|hi|hey|hallo|hola|by the way|actually|correction|übrigens|korrektur|对了|你好|您好|こんにちは)[,，、!！. ]+)?(?:(?:please )?(?:remember|note|keep in mind)(?: that)?[,:]? +|(?:bitte )?merke? dir(?: bitte)?(?:, dass|[:,])? +|(?:请)?(?:记住|记得|其实|更正)[，,：:]?)?/iu
const isRemembered = /remember|note|keep in mind|merke? dir|记住|记得/iu
/** What holds for the moment, the task at hand, or perhaps: moods of a day, wishes of this request, doubts. */
const passing =
  /(?<!\p{L})(?:today|tonight|yesterday|tomorrow|right now|at the moment|heute|gestern|gerade|im moment)(?!\p{L})|^(?:i|we) (?:think|believe|guess) (?:that )?(?:your?|th(?:e|is|at|ese) (?:answer|result|reply|table|number)s?)(?!\p{L})|^(?:i|we)(?:['’]d| would)? (?:like|want|need) (?:you|to (?:know|see|have|get)|an? |the )|^(?:i|we) (?:wonder|mean|may|might|have an? (?:question|problem|request))(?!\p{L})|^(?:ich|wir) (?:möchte|will|brauche|hätte gerne?|hätten gerne?|möchten|wollen|brauchen|meine|habe eine? (?:frage|bitte|problem))(?!.*(?:immer|grundsätzlich|niemals))(?!\p{L})|[今昨明]天|今晚|^我们?(?:想(?:知道|要|问|看)|要(?:一|你)|需要(?:一|你)|觉得|有一?个?问题)/iu
/** How to answer from now on, where a message begins with it: further on it may be of a text that is shown. */
const instruction =
  /^(?:(?:from now on|ab (?:jetzt|sofort)|von nun an|(?:please |bitte )?(?:(?:always|never) (?:answer|reply|respond|address|call me|speak|talk|write to me)|(?:antworte|schreib|sprich|nenn|duz|siez)(?:en sie|e)? (?:mi[rch]+ )?(?:bitte )?(?:immer|stets|nie|grundsätzlich)|(?:responde|contesta|réponds|répondez)(?:me|-moi)? (?:siempre|toujours)))(?!\p{L})(?!.*(?<!\p{L})(?:this|these|below|attached|following|diese[mnrs]?)(?!\p{L}))|(?:请)?(?:以后|今后|从现在(?:起|开始)|总是|始终|永远|一律)[，,]?(?:请|用|以|叫|别|不要|都))/iu
/** A sentence that begins in the first person. Without a model it takes this form to be a statement of the user's own. */
const firstPerson =
  /^(?:(?:i|we|my|our|ich|wir|meine?|unsere?|yo|mi|mis|me|nos|soy|tengo|vivo|trabajo|prefiero|nosotr[oa]s|nuestr[oa]s?|je|nous|mon|ma|mes|notre)(?![\p{L}\p{N}])|(?:eigentlich|inzwischen|mittlerweile|seit [\p{L}\p{N}.]+(?: \p{N}{4})?) \p{Ll}+ (?:ich|wir)(?!\p{L})|j['’]|我|私|僕|俺|わたし|ぼく)/iu
const question = /[?？]|(?:吗|呢|か)[。.！!]?$/u
/** Where words of others may begin, in a message of the user: none after it are taken for the user's own. */
const quotation = /["“”„«»「『`]|^>|(?<!(?:remember|note|mind|that|dir|记住|记得) ?)[:：](?!\d)/imu
const maxStatementChars = 300
const maxRuleChars = 20_000

/** The declarative sentences of a message in which its user speaks of themselves, verbatim but for an opening. */
export const listOwnStatements = (message: string) => {
  const lines = toLines(message.slice(0, maxRuleChars))
  const end = lines.search(quotation)
  return listSentences(lines).flatMap(({ start, text }) => {
    const evidence = text.trim()
    const content = evidence.replace(opening, '')
    if (end >= 0 && start + text.length > end) return []
    const isInstruction = start === 0 && instruction.test(content)
    const isLasting = isInstruction || isRemembered.test(evidence) || !passing.test(content)
    const isStatement = isInstruction || firstPerson.test(content)
    const isOwn = content.length <= maxStatementChars && isStatement && isLasting && !question.test(content)
    const kind = isInstruction ? ('preference' as const) : ('fact' as const)
    return isOwn ? [{ content, evidence: evidence as Evidence, isInstruction, kind }] : []
  })
}

const withoutEnd = (sentence: string): string => toLine(sentence).replace(/(?<![.!。！])[.!。！]+$/u, '')

/** The evidence of a statement that is such a sentence; null where it is not. */
export const findOwnStatement = (texts: readonly string[], statement: string): Evidence | null => {
  const wanted = withoutEnd(statement)
  const matches = texts
    .flatMap(listOwnStatements)
    .filter(({ content, evidence }) => [content, evidence].some((one) => withoutEnd(one) === wanted))
  return matches[0]?.evidence ?? null
}
