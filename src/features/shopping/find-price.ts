const units =
  'mm|cm|m|km|in|inch|inches|ft|g|kg|mg|lbs?|oz|ml|cl|l|lit(?:er|re)s?|gallons?|cups?|w|kw|watts?|v|volts?|hz|khz|db|bars?|' +
  'psi|degrees?|hours?|hrs?|h|minutes?|mins?|seconds?|s|days?|weeks?|months?|years?|people|persons?|pieces?|pcs|items?|gb|tb|mb|%|°|″|"'
const codes = 'usd|eur|gbp|jpy|cny|rmb|chf|cad|aud|inr|krw'
const words = `dollars?|bucks|cents?|euros?|pounds sterling|quid|yuan|yen|rupees?|${codes}`
const limits =
  'under|below|less than|up to|at most|no more than|not more than|cheaper than|within|around|about|max(?:imum)?(?: of)?'
// only from the beginning of a number, so that a long one is read once
const amount = String.raw`(?<![\d.,])\d(?:[\d.,]*\d)?`

const prices = [
  new RegExp(
    String.raw`[$€£¥₹￥]\s?${amount}|${amount}\s?(?:[$€£¥₹￥]|k?\s?(?:${words})\b)|\b(?:${codes})\s?${amount}`,
    'iu',
  ),
  new RegExp(
    String.raw`\b(?:price|budget|cost(?:s|ing)?)\b[^.;]{0,30}?${amount}|${amount}[^.;]{0,20}?\bbudget\b`,
    'iu',
  ),
  // a number after such a word is a price, unless a unit follows
  new RegExp(String.raw`\b(?:${limits})\s+(?:${amount})(?![.,]?\d|[\s-]?(?:${units})(?![\p{L}]))`, 'iu'),
  new RegExp(
    String.raw`${amount}\s?(?:元|块|美元|欧元|人民币|日元)|(?:预算|价格|不超过|低于)\D{0,6}${amount}`,
    'iu',
  ),
]

/** The words of a text that name a price; null: there are none. */
export const findPrice = (text: string): string | null => {
  for (const price of prices) {
    const found = price.exec(text)
    if (found) return found[0]
  }
  return null
}
