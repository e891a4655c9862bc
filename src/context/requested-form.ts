import { parseFieldLine, toProposalLine, toProposedFields } from '../state/proposals.ts'
import type { OutputField } from '../state/runtime-state.ts'

/**
 * The form that a request asks for in its own words, where no model has named it: phrases of English, German and Chinese
 * that ask for nothing else. In doubt none.
 */

const word = String.raw`[\p{L}-]+`
const count = String.raw`(?:\d+|a few|two|three|four|five|ten|eine[mr]?|zwei|drei|vier|fünf|zehn)`
const phrases = [
  `as (?:an? )?(?:${word} ){0,2}?(?:table|list|bullets|bullet points|json|letter|e-?mail|poem)`,
  `in (?:an? (?:${word} )?(?:table|list)|bullets|bullet points|json|yaml|markdown|prose)`,
  `in (?:an? )?(?:${word} ){1,2}?(?:tone|style|manner|language)`,
  `in (?:at most |about )?${count} (?:${word} )?(?:words?|sentences?|lines?|paragraphs?)`,
  `(?:answer|reply|write|respond|be|keep it) (?:very )?(?:brief|formal|casual|short)|(?:answer|reply|write|respond|talk) like an? ${word}`,
  'briefly|concisely|politely|informally|formally',
  `als (?:eine |ein )?(?:${word} ){0,2}?(?:tabelle|liste|aufzählung|stichpunkte|fließtext|json|gedicht|brief|e-?mail)`,
  `(?:in|im|mit) (?:eine[mr] )?${word}(?:em|er|en) (?:ton|stil|sprache)`,
  `in (?:höchstens |etwa )?${count} (?:${word} )?(?:wörtern|worten|satz|sätzen|zeilen|absätzen)`,
  `(?:antworte|schreibe?) (?:bitte )?(?:kurz|knapp|locker|wie eine? ${word})`,
  'kurz und knapp|in stichpunkten|in stichworten|tabellarisch|förmlich|sachlich|höflich',
].join('|')
const hanPhrases = [
  String.raw`(?:用|以|按|成)[^，。；、！？\s]{0,6}?(?:表格|列表|要点|JSON|语气|口吻|风格|句话)(?:的?形式)?`,
  String.raw`语气[^，。；、！？\s]{2,4}|(?:用|不超过)[一二两三四五六七八九十百\d]+个?字|简短地|简洁地|分点`,
].join('|')
const forms = new RegExp(String.raw`(?<!\p{L})(?:${phrases})(?!\p{L})|${hanPhrases}`, 'giu')

const name = String.raw`\p{L}[\p{L}\p{N}_-]{0,40}?`
const comma = ' ?[,，、] ?'
const and = String.raw`(?:${comma}| ?)(?<!\p{L})(?:and|und) | ?[和与及] ?`
const end = String.raw`(?= ?,? ?(?:$|[.。;；!！?？\n]|(?:of|for|von|für|please|bitte)(?!\p{L})|列出|给出|返回))`
/** At least three names in a row, after a colon or what announces fields. */
const list = new RegExp(
  String.raw`(?:[:：]|(?<!\p{L}|such )(?:as|als|fields|keys|felder)(?!\p{L})|字段|按) ?(${name}(?:${comma}${name}){1,30}(?:${comma}|${and})${name})${end}`,
  'iu',
)
const between = new RegExp(`${and}|${comma}`, 'iu')

/** A longer request is no short one: understand reads it. */
const maxChars = 800

/** The style in the words of the request, and the pieces that it names. */
export const readRequestedForm = (prompt: string): { style: string; structure: OutputField[] } => {
  if (prompt.length > maxChars) return { style: '', structure: [] }
  const text = prompt.replaceAll(/[^\S\n]+/g, ' ')
  const found = [...text.matchAll(forms)]
  const [first, last = first] = [found[0], found.at(-1)]
  const whole = first && last ? text.slice(first.index, last.index + last[0].length) : ''
  const named = list.exec(text.replaceAll(forms, '.'))?.[1]
  return {
    style: toProposalLine(whole) === whole ? whole : (first?.[0] ?? ''),
    structure: toProposedFields(named?.split(between).map(parseFieldLine) ?? []),
  }
}
