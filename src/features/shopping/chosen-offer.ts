import type { ShownOffer } from './shopping-results.ts'

/** An offer as an option of the question. */
export const toOption = ({ label, total }: ShownOffer): string => `${label}, ${total.text}`

const ordinals = [
  'first',
  'second',
  'third',
  'fourth',
  'fifth',
  'sixth',
  'seventh',
  'eighth',
  'ninth',
  'tenth',
]
const hanDigits = [...'一二三四五六七八九十']
const place = new RegExp(
  `^(?:#|no\\.? ?|number |option |item |the |第)?(\\d{1,2}|${[...ordinals, ...hanDigits].join('|')})(?:st|nd|rd|th)?\\.?(?: one)?[个個号號款项]?$`,
)
/** The place in a list that an answer names, from 0: `2`, `the second one`, `第二个`. */
const findPlace = (said: string): number | null => {
  const text = place.exec(said)?.[1]
  if (text === undefined) return null
  const named = Math.max(ordinals.indexOf(text), hanDigits.indexOf(text))
  return named < 0 ? Number(text) - 1 : named
}

const cheapest = /^(?:the )?cheapest(?: one)?$|^最便宜的?(?:那个|那個|一个|一款)?$/
/** Of two, this is the cheapest. */
const cheaper = /^(?:the )?cheaper(?: one)?$|^(?:更|比较)?便宜(?:一点|点|些)?的?(?:那个|那個|一个|一款)?$/
const findCheapest = (shown: readonly ShownOffer[]): ShownOffer | undefined => {
  const [first, second] = shown.toSorted((a, b) => a.total.minor - b.total.minor)
  const isOneCurrency = new Set(shown.map(({ total }) => total.currency)).size === 1
  return isOneCurrency && first?.total.minor !== second?.total.minor ? first : undefined
}

/** Which offer an answer names: by its cart id, its place in the list, its name, or as the cheapest; undefined: none, or several. */
export const findChosenOffer = (
  answer: string,
  shown: readonly ShownOffer[],
  all: readonly ShownOffer[],
): ShownOffer | undefined => {
  const named = all.find(({ cart_id }) => cart_id === answer.trim())
  if (named) return named
  const said = answer.normalize('NFKC').trim().toLowerCase()
  const at = findPlace(said)
  if (at !== null) return shown[at]
  if (cheapest.test(said) || (shown.length === 2 && cheaper.test(said))) return findCheapest(shown)
  const names = (offer: ShownOffer) => [offer.label, toOption(offer)].map((name) => name.normalize('NFKC'))
  const [offer, ...others] = shown.filter((one) => names(one).some((name) => name.toLowerCase() === said))
  return others.length === 0 ? offer : undefined
}
