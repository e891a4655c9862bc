import { memoizeByObject } from '../../state/memoize.ts'
import type { Embeddings } from '../../state/ports/embeddings.ts'
import type { Scenario } from '../../state/scenario.ts'
import { extractWords } from '../../state/text/words.ts'

/** Which scenario a request belongs to, without a model that reads it. In doubt none: a row holds for the whole session. */

type Texts = Pick<Scenario, 'description' | 'examples'>

/** What a row is known by. */
export const listScenarioTexts = ({ description, examples }: Texts): string[] =>
  [description, ...examples].filter((text) => text !== '')

/** Words that any request may have, of questions and politeness. Other languages lean on the thresholds below. */
const anyRequest = new Set(
  `about after again all also am another any anything because before below can cannot could did each else ever every find
  first following get give go going good got hello help here hi how into it just keep know last let like long look lot made
  make many may me more most much must need new next no not now off old one only other out over own please put question said
  say see should show some still such take tell thank thanks their there these thing think those three time today tomorrow
  too try two under until up use very want way well were where which while who whom whose why work would write yes yet
  yesterday best better day days week weeks month months year years monday tuesday wednesday thursday friday saturday sunday
  january february march april june july august september october november december many table list happen happens
  aber alle allem allen aller alles als also am an andere auch auf aus bei bin bis bist bitte brauche da damit danke dann das
  dass dein deine dem den denn der des dich die dies diese diesem diesen dieser dieses dir doch dort drei du durch ein eine
  einem einen einer eines er es etwas euch für gegen geht gerne gib gibt gut hab habe haben hallo hast hat hatte heute hier
  hoch ich ihm ihn ihr ihre ihren im immer in ins ist ja jede jeden jetzt kann kannst kein keine kommt können könnten letzte
  letzten man mehr mein meine meinem meinen meiner mich mir mit morgen muss möchte müssen nach nicht noch nun nur ob oder ohne
  schon sehr sein seine seit sich sie sind so soll sollte um und uns unser unter viel viele vom von vor wann war warum was
  weil tag tage woche wochen monat monate monats jahr jahre jahres montag dienstag mittwoch donnerstag freitag samstag sonntag
  januar februar märz mai juni juli oktober dezember besten besser tabelle liste heißt welche welchem welchen welcher welches wenn wer werden wie wieder will wir wird wo wurde zeige zu zum zur zwei über`.split(
    /\s+/,
  ),
)
const anyRequestHan =
  /今天|明天|昨天|今年|去年|明年|[上下这]?个?月份?|[上下这]个?周|星期|最好|谁|什么|怎么样?|怎样|如何|多少|哪[个些里]|为什么|时候|可以|能不能|请问|帮我|给我|告诉|谢谢|你好|一下|一[个些点]|这[个些]?|那[个些]?|没有|还|能|是|在|和|与|有|要|想|把|将|都|就|也|很/g

/** Beginnings are enough: German and English put their endings last (n-prefix stemming, McNamee and Mayfield 2004). */
const stemLength = 6

const scriptWithoutSpaces =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u

/** The words that say what a request is about; of scripts without spaces, pairs of neighbors. */
const extractTerms = (text: string): Set<string> =>
  new Set(
    extractWords(text.replace(anyRequestHan, ' '), 400).flatMap((word) => {
      if (scriptWithoutSpaces.test(word)) return toPairs(word)
      return anyRequest.has(word) || word.length < 2 || /^\d+$/.test(word) ? [] : [word.slice(0, stemLength)]
    }),
  )

const toPairs = (word: string): string[] => {
  const letters = [...word]
  return letters.slice(1).map((letter, at) => `${letters[at]}${letter}`)
}

/** A word in two texts of a row is typical of it; one that a single example happens to have counts less. */
const incidentalWeight = 0.75
const readRowTerms = memoizeByObject((row: Texts): ReadonlyMap<string, number> => {
  const weights = new Map<string, number>()
  for (const text of listScenarioTexts(row))
    for (const term of extractTerms(text)) weights.set(term, weights.has(term) ? 1 : incidentalWeight)
  return weights
})

/**
 * The request and a row must share so much: more than one word, and this share of the request. One word is chance, unless it is
 * all that the request says.
 */
const minWeight = 1.25
const minShare = 0.25
/** A row must have so many times the evidence of the next one. */
const minLead = 2

/**
 * The row whose description and examples share enough words with a request, and clearly more than those of any other row;
 * null where none does. A word that several rows have counts for each of them in part.
 */
export const matchScenario = <Row extends Texts>(prompt: string, rows: readonly Row[]): Row | null => {
  const asked = [...extractTerms(prompt)]
  if (asked.length === 0) return null
  const rowTerms = rows.map(readRowTerms)
  const weights = asked.map((term) => {
    const holders = rowTerms.filter((terms) => terms.has(term)).length
    return holders === 0 ? 0 : 1 / holders
  })
  const weigh = (terms: ReadonlyMap<string, number>): number =>
    asked.reduce((sum, term, at) => sum + (terms.get(term) ?? 0) * (weights[at] ?? 0), 0)
  const [best, second] = rows
    .map((row, at) => ({ row, weight: weigh(rowTerms[at] as ReadonlyMap<string, number>) }))
    .sort((a, b) => b.weight - a.weight)
  if (!best || best.weight < minLead * (second?.weight ?? 0)) return null
  const isAll = asked.every((term) => readRowTerms(best.row).has(term))
  return isAll || (best.weight >= minWeight && best.weight >= minShare * asked.length) ? best.row : null
}

/** Requests that fit no scenario: an embedding must find a row closer than these. */
const otherRequests = [
  'Hello, who are you and what can you do?',
  'What is the capital of France?',
  'Write a short poem about the sea.',
  '你好，今天天气怎么样？',
  '请解释一下量子力学。',
  'Erzähl mir einen Witz.',
]
const minContrast = 0.3
const minMargin = 0.1

/**
 * The row whose description or one of whose examples is closest to a request by the embedding model; null where no row is clearly
 * closer than the others and than requests of no scenario. Models differ in how similar any two texts are to them, so the
 * similarity counts from that of the texts that do not fit up.
 */
export const matchBySimilarity = async <Row extends Texts>(
  prompt: string,
  rows: readonly Row[],
  compare: Embeddings['compare'],
  signal: AbortSignal,
): Promise<Row | null> => {
  const texts = [...otherRequests, ...rows.flatMap(listScenarioTexts)]
  const similarities = await compare(prompt, texts, signal)
  if (!similarities) return null
  const byText = new Map(texts.map((text, at) => [text, similarities[at] ?? -1]))
  const findClosest = (group: readonly string[]): number =>
    Math.max(-1, ...group.map((text) => byText.get(text) ?? -1))
  const [best, second] = rows
    .map((row) => ({ row, similarity: findClosest(listScenarioTexts(row)) }))
    .sort((a, b) => b.similarity - a.similarity)
  if (!best) return null
  const floor = Math.max(0, findClosest(otherRequests))
  const isClose = best.similarity - floor > minContrast * (1 - floor)
  return isClose && best.similarity - (second?.similarity ?? -1) > minMargin * (1 - floor) ? best.row : null
}
