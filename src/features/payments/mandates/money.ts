import { JsonNumber } from './json.ts'

/** An amount in minor units of its currency: 60349 of USD is 603.49, 60349 of JPY is 60349. Never negative, less than 2^53. */
export type Money = { currency: string; minor: number }

/** Why an amount is refused: `message` says what is wrong and what to send instead. */
export type MoneyError = {
  code: 'unknown_currency' | 'invalid_amount' | 'negative_amount' | 'too_many_decimals' | 'amount_too_large'
  message: string
}

const codes: Record<number, string> = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  2: `AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CNY
    COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD
    KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR
    NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY
    TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG`,
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
}

/** How many decimals each currency has. Source: ISO 4217, list one (active codes with a minor unit; ANG and BGN, which end). */
export const currencyExponents: ReadonlyMap<string, number> = new Map(
  Object.entries(codes).flatMap(([exponent, names]) =>
    names.split(/\s+/).map((name) => [name, Number(exponent)] as const),
  ),
)

const toExponent = (currency: string): number | MoneyError =>
  currencyExponents.get(currency) ?? {
    code: 'unknown_currency',
    message: `${JSON.stringify(currency.slice(0, 20))} is no currency of ISO 4217: send its code of three capital letters, such as "USD"`,
  }

const checkMinor = (minor: bigint, currency: string): Money | MoneyError =>
  minor > BigInt(Number.MAX_SAFE_INTEGER)
    ? { code: 'amount_too_large', message: 'must be less than 2^53 minor units: send a smaller amount' }
    : { currency, minor: Number(minor) }

const negative: MoneyError = { code: 'negative_amount', message: 'is negative: send zero or more' }

/** An amount in major units, from text alone: `"603.49"`, or a number as `readJson` found it. A fraction in a double is refused. */
export const parseMoney = (amount: unknown, currency: string): Money | MoneyError => {
  const exponent = toExponent(currency)
  if (typeof exponent === 'object') return exponent
  const text =
    amount instanceof JsonNumber ? amount.source : Number.isSafeInteger(amount) ? String(amount) : amount
  if (typeof text === 'number')
    return {
      code: 'invalid_amount',
      message:
        'is a double, whose decimals are not certain: read its JSON text by readJson, or send a string',
    }
  const [matched, sign, whole = '', decimals = ''] =
    (typeof text === 'string' && text.length <= 100 && /^(-?)(\d+)(?:\.(\d+))?$/.exec(text)) || []
  if (matched === undefined)
    return { code: 'invalid_amount', message: 'must be a decimal without an exponent, such as 603.49' }
  if (sign) return negative
  const significant = decimals.replace(/(?<!0)0+$/, '')
  if (significant.length > exponent)
    return {
      code: 'too_many_decimals',
      message: `has ${significant.length} decimals, ${currency} has ${exponent}: round the amount to ${exponent} decimals`,
    }
  return checkMinor(BigInt(whole + significant.padEnd(exponent, '0')), currency)
}

/** An amount that is in minor units already: a whole number, such as 60349. */
export const parseMinor = (amount: unknown, currency: string): Money | MoneyError => {
  const exponent = toExponent(currency)
  if (typeof exponent === 'object') return exponent
  const text = amount instanceof JsonNumber ? amount.source : typeof amount === 'number' ? String(amount) : ''
  if (text.startsWith('-')) return negative
  return /^\d{1,100}$/.test(text)
    ? checkMinor(BigInt(text), currency)
    : {
        code: 'invalid_amount',
        message: `must be a whole number of minor units (1 ${currency} is ${10 ** exponent})`,
      }
}

/** The amount in major units with all its decimals: `603.49`. Made from digits, without a double. */
export const formatMoney = ({ currency, minor }: Money): string => {
  const exponent = currencyExponents.get(currency) ?? 0
  if (exponent === 0) return String(minor)
  const digits = String(minor).padStart(exponent + 1, '0')
  return `${digits.slice(0, -exponent)}.${digits.slice(-exponent)}`
}
