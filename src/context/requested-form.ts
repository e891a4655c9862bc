import { parseFieldLine, toProposalLine, toProposedFields } from '../state/proposals.ts'
import type { OutputField } from '../state/runtime-state.ts'

/**
 * The form that a request asks for in its own words, where no model has named it: phrases of English, German and Chinese
 * that ask for nothing else. In doubt none.
 */

const word = String.raw`(?!(?:the|this|that|these|my|our|your|der|die|das|den|dem|diese[mnrs]?) )[\p{L}-]+`
const few = `(?:${word} ){0,2}?`
const count = String.raw`(?:\d+|a few|one|two|three|four|five|ten|ein(?:e[mr]?)?|zwei|drei|vier|fünf|zehn)`
const most = '(?:max|at most|about|no more than|less than|under|within|höchstens|etwa|maximal)'
const units = '(?:words?|sentences?|lines?|paragraphs?|wörtern?|worten?|satz|sätzen?|zeilen?|absätzen?)'
const manner =
  '(?:brief|concise|short|formal|informal|casual|polite|friendly|professional|neutral|simple|plain|technical|academic|humorous)'
const manners = `${manner}(?:,? (?:and )?${manner})?`
const weise = '(?:kurz|knapp|locker|formell|förmlich|höflich|sachlich|freundlich)'
const layout =
  '(?:tables?|lists?|bullets?|csv|tsv|json|yaml|xml|html|markdown|prose|letter|e-?mail|memo|essay|poem|haiku)'
const gestalt =
  '(?:tabelle|liste|aufzählung|stichpunkte|fließtext|csv|json|yaml|xml|html|markdown|gedicht|brief|e-?mail)'
const language = '(?:english|german|french|spanish|italian|chinese|japanese)'
const sprache = '(?:englisch|deutsch|französisch|spanisch|italienisch|chinesisch|japanisch)'
const audience = `(?:${word}-year-old|complete beginner|beginner|child|layman|five)`
const phrases = [
  `as (?:an? )?${few}${layout}(?: (?:points|lists?|tables?))?`,
  `in (?:an? (?:${word} )?(?:table|list)|(?:${count} )?(?:short )?(?:bullets|bullet points)|prose)`,
  `(?:use|using) (?:an? )?(?:${word} )?(?:bullets|bullet points|table|markdown)`,
  `(?:write|draft|compose)(?: me)? an? (?:${few}(?:letter|e-?mail|memo|essay|poem|haiku)|(?:formal|informal|polite|friendly|professional|humorous) ${word})`,
  `in (?:an? )?(?:${word} ){1,2}?(?:tone|style|manner|language)|in ${manner} (?:words|terms)`,
  `${manners} (?:tone|style|manner|language|answer|reply|register(?=[,.:;]|$))|(?<=^|[.!:] |(?<!\\p{L})a |write |draft |give me )${manners} summary`,
  `(?:answer|reply|respond|write)(?: me)? in ${few}${language}|in ${manner} ${language}`,
  `(?:in (?:${most} )?|(?<=^|[,;:.!?] |use |write |keep it |make it )${most} )${count} (?:${word} )?${units}`,
  `(?:answer|reply|respond|write|keep it|make it)(?: sound)? (?:very |more )?${manner}(?: and ${manner})?`,
  `(?:answer|reply|write|respond|talk) like an? ${word}`,
  `(?<=(?:explain|describe)[^.?!]{0,60} )(?:to|for) (?:an? )?${audience}s?|like i(?:'?| a)m (?:an? )?${audience}`,
  `(?:no (?:jargon|markdown|emojis?)|(?:just|only) an? (?:number|word)|nur (?:eine zahl|ein wort)|plain text)(?= please| bitte|[,.:;]|$)|ohne (?:fachbegriffe|fachwörter|markdown)|eli5|(?<=(?:explain|describe|put)(?: it| this)? )simply`,
  'briefly|concisely|politely|informally|formally|(?:answer|just|only|with) (?:a )?yes or no(?! (?!(?:please|if|whether)(?!\\p{L}))\\p{L})|mit ja oder nein',
  `als (?:eine |ein )?${few}${gestalt}(?: und ${weise}(?=[,.:;!]|$))?|in (?:einer ${few}${gestalt}|(?:${count} )?(?:kurzen )?(?:stichpunkten|stichworten))`,
  `(?:in|im|mit) (?:eine[mr] )?${word}(?:em|er|en) (?:ton|stil|sprache|worten)`,
  `(?:antworte|schreibe?)(?: mir| bitte)? auf ${sprache}`,
  `(?:antworte|schreibe?|erkläre?|sei)(?: es| mir| bitte)* (?:${weise}(?: und ${weise})?|wie eine? ${word})`,
  `(?:kurze|knappe|förmliche|ausführliche)(?:,? (?:und )?${weise}e)? (?:antwort|(?<=(?:^|[.!:] |eine |schreibe? |gib mir )\\p{L}+(?:,? (?:und )?\\p{L}+)? )zusammenfassung)|${weise} und ${weise}|tabellarisch|stich(?:punkt|wort)artig|in tabellenform|mit spiegelstrichen|${weise}(?: (?:formuliert|geschrieben|gehalten|schreiben|formulieren)|(?= bitte))|förmlich|sachlich|höflich`,
].join('|')
const order = '(?<=^|[.!:] |please |bitte )(?:give me|return|gib mir) (?:a )?'
/** Of a question they may be what it asks about. */
const requestPhrases = [
  `(?<=^)(?:just |only |nur )?${count} (?:${word} )?${units}(?: max| only| or less)?(?=(?:,? (?:please|bitte))? ?:)|(?<=^)(?:numbered|bulleted|bullet) (?:list(?= of |:)|points(?=:))|(?<=^|[.!] )(?:(?:an? |eine )?(?:table|bullet list|tabelle|liste),? (?:please|bitte)|${manner}(?:,? please)?)(?=[.!:]|$)`,
  `(?:keep|make) (?:the|your) (?:tone|style|answer|reply|language) (?:very )?${manner}|(?:answer|reply|respond) with (?:just |only )?(?:an? |one )(?:single )?(?:word|sentence|number|name|line|paragraph)`,
  `(?:make|create|give me|mach|erstelle|gib mir) (?:an? |eine )${few}(?:table|list|tabelle|liste)`,
  `(?:be|sound) (?:very |more )?${manner}|in the (?:style|voice|manner|tone) of (?:an? )?${word}(?: ${word})?|im stil eine[rs] ${word}|(?:schreibe?|verfasse|formuliere)(?: mir| bitte)* eine?n? ${weise}e[nrs]? ${word}`,
  `in (?:csv|json|yaml|xml|html|markdown)|${order}(?:csv|json|yaml|xml)(?= ?(?:$|[.,;:!?\n]|(?:with|of|for|mit|aus|für|only|please|bitte)(?!\\p{L})))`,
].join('|')
const hanPhrases = [
  String.raw`(?<!常)(?:用|以|按|成)(?:markdown)?[^，。；、！？\s]{0,6}?(?:表格|列表|要点|json|csv|语气|口吻|风格|句话|[英中法德日][文语](?!怎么|字|单词))(?:的?(?:形式|格式))?`,
  String.raw`语气[^，。；、！？\s]{2,4}|(?:用|不超过|少于)[一二两三四五六七八九十百\d]+个?字|(?:控制在)?[一二两三四五六七八九十百\d]{1,5}个?字(?:以内|之内)`,
  String.raw`用[^，。；、！？\s]{1,10}的(?:话|语言)(?=[解说讲描介回写])|(?<=^)(?:[一二两三]句话|表格形式|列表形式)(?=[：:])|只回答一个(?:数字|词)|(?:正式|轻松|随意|友好|专业)(?:一点|一些)(?=[，。,；]|$)|不要?用专业术语`,
  '简[短洁单要]地?(?:回答|说明|介绍)|简[短洁]地|口语化|通俗易懂|分[一二两三四五六七八九十\\d]*点|只(?:[要需用]?回?答|用)[“"「]?是[”"」]?[或和/]?[“"「]?(?:否|不是)(?![定决认])',
].join('|')
const formsOfQuestions = new RegExp(String.raw`(?<!\p{L})(?:${phrases})(?!\p{L})|${hanPhrases}`, 'gu')
const forms = new RegExp(String.raw`(?<!\p{L})(?:${phrases}|${requestPhrases})(?!\p{L})|${hanPhrases}`, 'gu')
/** A question: whether, how, why, who or which. */
const question =
  /^(?:is|are|was|were|does|do|did|can(?! you)|could(?! you)|how|why|what is|what's|who|which|ist|sind|hat|wie|warum|was ist|wer|welche\p{L}?)(?!\p{L})/u
/** A request about the things that it names. */
const about = /^(?:translate|compare|spell|define|sort|übersetze|vergleiche|翻译|比较)/u

const name = String.raw`\p{L}[\p{L}\p{N}_-]{0,40}?`
const comma = ' ?[,，、] ?'
const and = String.raw`(?:${comma}| ?)(?<!\p{L})(?:and|und) | ?[和与及] ?`
/** At least three names in a row. */
const names = `(${name}(?:${comma}${name}){1,30}(?:${comma}|${and})${name})`
const end = String.raw`(?= ?,? ?(?:$|[.。;；!！?？\n]|(?:of|for|per|von|für|je|please|bitte)(?!\p{L})|列出|给出|返回))`
/** Stands for words that ask for a table or for data. */
const formMark = '\u{1}'
const announced = new RegExp(
  String.raw`(?<!\p{L})(?:(?:as|in) (?:an? )?${few}(?:table|csv|json|yaml|xml)|als (?:eine )?${few}(?:tabelle|csv|json)|(?:(?:an? |eine )?(?:table|tabelle)|${order}(?:csv|json|yaml|xml))(?= (?:with|of|mit|aus) ))(?!\p{L})|[用以按成][^，。；、！？\s]{0,4}?(?:表格|json|csv)(?:的?(?:形式|格式))?`,
  'gu',
)
const lists: RegExp[] = []
for (const source of [
  // after a colon, or what announces fields
  String.raw`(?:[:：]|(?<!\p{L})(?:fields|columns|keys|feldern?|spalten)(?!\p{L})|字段|列名|按|每项给出|逐项列出) ?${names}${end}`,
  String.raw`(?<!\p{L})(?:give|show|return|list|answer|reply|write|gib|zeige?|nenne) [^.?!]{0,80}?(?<!such )(?:as|als) ${names}${end}`,
  // fields of every item
  String.raw`(?<!\p{L})(?:return|list|show|give me|nenne|gib mir) (?:the )?${names}(?= (?:(?:of|for|von|für) (?:each|every|all|jede|alle)|(?:per|je|pro) \p{L}))`,
  String.raw`^${names}(?= (?:(?:of|for|von|für) (?:each|every|all|jede\p{L}?|alle)|per|je|pro) [\p{L}-]{1,40}[ .!${formMark}]{0,9}$)`,
  // beside the word for a table or data
  String.raw`(?:(?<!\p{L})(?:return|show|give me|gib mir|zeige?) (?:the |die )?|列出|给出|返回)${names}[ ,，]*(?=${formMark})`,
  `${formMark}[ ,，]*(?:with |of |mit |aus |返回|列出|写出|给出)${names}${end}`,
  // alone after the question
  String.raw`[?？] ${names} ?\.?$`,
])
  lists.push(new RegExp(source, 'u'))
const between = new RegExp(`${and}|${comma}`, 'iu')

/** A longer request is no short one: understand reads it. */
const maxChars = 800

/** Words in quotes are what a request is about. İ alone is longer in small letters. */
const hide = (found: string): string => (/[ İ]/.test(found) ? '_'.repeat(found.length) : found)

/**
 * The style in the words of the request, and the pieces that it names. It is read in small letters: a pattern of Unicode that looks past case
 * takes four times as long to compile, which the first run of a process would wait for.
 */
export const readRequestedForm = (prompt: string): { style: string; structure: OutputField[] } => {
  if (prompt.length > maxChars) return { style: '', structure: [] }
  const said = prompt.replaceAll(/[^\S\n]+/g, ' ')
  const text = said.replaceAll(/["“„«][^"”“»„«\n]*["”“»]|İ/g, hide).toLowerCase()
  const isQuestion = question.test(text)
  const found = [...text.matchAll(isQuestion ? formsOfQuestions : forms)]
  const [first, last = first] = [found[0], found.at(-1)]
  const toEnd = (match = first): string => said.slice(first?.index, match ? match.index + match[0].length : 0)
  const whole = toEnd(last)
  // in a question or a translation the names are its subject, not fields
  const request = isQuestion ? text.replace(/^[^?？]*[?？]?/, '') : about.test(text) ? '' : text
  const plain = request.replaceAll(announced, formMark).replaceAll(forms, '.')
  const [, named = ''] = lists.find((one) => one.test(plain))?.exec(plain) ?? []
  const at = text.indexOf(named)
  const pieces = said
    .slice(at, at + named.length)
    .split(between)
    .filter(Boolean)
  return {
    style: toProposalLine(whole) === whole ? whole : toEnd(),
    structure: toProposedFields(pieces.map(parseFieldLine)),
  }
}
