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

/**
 * Which offer an answer names: by its option, its name, its place in the list, its cart id, or as the cheapest. Undefined: none, or
 * several, since a merchant may give a cart the id `2` or a product the name "No. 2".
 */
export const findChosenOffer = (answer: string, shown: readonly ShownOffer[]): ShownOffer | undefined => {
  const fold = (text: string) => text.normalize('NFKC').trim().toLowerCase()
  const said = fold(answer)
  const named = findPlace(said)
  const isCheapest = cheapest.test(said) || (shown.length === 2 && cheaper.test(said))
  const lowest = isCheapest ? findCheapest(shown) : undefined
  const [offer, ...others] = shown.filter(
    (one, at) =>
      at === named ||
      one === lowest ||
      one.cart_id === answer.trim() ||
      [one.label, toOption(one)].some((name) => fold(name) === said),
  )
  return others.length === 0 ? offer : undefined
}
