const units =
  'mm|cm|m|km|in|inch|inches|ft|g|kg|mg|lbs?|oz|ml|cl|l|lit(?:er|re)s?|gallons?|cups?|w|kw|watts?|v|volts?|hz|khz|db|bars?|' +
  'psi|degrees?|hours?|hrs?|h|minutes?|mins?|seconds?|s|days?|weeks?|months?|years?|people|persons?|pieces?|pcs|items?|gb|tb|mb|%|°|″|"'
const codes = 'usd|eur|gbp|jpy|cny|rmb|chf|cad|aud|inr|krw'
const words = `dollars?|bucks|cents?|euros?|pounds sterling|quid|yuan|yen|rupees?|${codes}`
const limits =
  'under|below|less than|up to|at most|no more than|not more than|cheaper than|more expensive than|within|around|about|max(?:imum)?(?: of)?'
const numerals =
  'one|two|three|four|five|six|seven|eight|nine|ten|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety'
// only from the beginning of a number, so that a long one is read once
const amount = String.raw`(?<![\d.,])\d(?:[\d.,]*\d)?`

const han = '零一二两兩三四五六七八九十百千万萬'
const hanNumber = `(?<![${han}])[${han}]+(?![${han}])`
/** From a hundred on: a smaller number beside such words is rarely a price. */
const hanLarge = `(?<![${han}])(?=[${han}]*[百千万萬])[${han}]+(?![${han}])`
const hanUnits = '(?:[个個人位杯克瓦米升天年月巴分度]|公|毫|厘|小时|小時|千?[克瓦米])'

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
    String.raw`\b(?:${numerals}|hundred|thousand)\s(?:${words})\b|\b(?:${limits})\s(?:(?:an?|${numerals})\s)?(?:hundred|thousand)\b(?!\s(?:${units})\b)`,
    'iu',
  ),
  new RegExp(
    String.raw`(?:${amount}|${hanNumber})\s?(?:元|块钱|塊錢|円|美元|美金|欧元|歐元|英镑|英鎊|人民币|人民幣|日元|港币|港幣)|${amount}\s?[百千万萬]?[块塊]|[百千万萬][块塊]`,
    'u',
  ),
  new RegExp(
    String.raw`(?:预算|預算|价格|價格|价位|人民币|人民幣|不超过|不要超过|不超過|低于|低於|少于|少於|不到)[^\d${han}]{0,6}(?:${amount}(?![\d.,])|${hanLarge})(?!${hanUnits})`,
    'u',
  ),
  new RegExp(`(?:${amount}|${hanLarge})(?:以内|以內|之内|以下|左右|上下)`, 'u'),
]

/** The words of a text that name a price; null: there are none. */
export const findPrice = (text: string): string | null => {
  const plain = text.normalize('NFKC')
  for (const price of prices) {
    const found = price.exec(plain)
    if (found) return found[0]
  }
  return null
}
