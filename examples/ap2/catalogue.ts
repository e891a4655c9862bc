import type { Money } from '../../src/payments/mandates/money.ts'
import { refuse } from './messages.ts'

/** What the merchant sells. Prices are minor units, without shipping and tax. */
export type Product = {
  sku: string
  label: string
  minor: number
  refundDays: number
  words: string[]
  stock: number
}

export const currency = 'USD'

/** Coffee makers, the best match of two equal ones first. */
const catalogue: Product[] = [
  ['ESP-MINI', 'Compact espresso maker', 8_999, 30, 'espresso machine compact small'],
  [
    'ESP-AUTO',
    'Automatic espresso and cappuccino machine',
    24_900,
    30,
    'espresso machine automatic cappuccino',
  ],
  ['ESP-PRO', 'Professional-grade espresso machine', 59_999, 60, 'espresso machine professional barista'],
  ['DRIP', 'Drip coffee maker', 4_550, 0, 'drip filter'],
].map(([sku, label, minor, refundDays, words]) => ({
  ...{ sku: String(sku), label: String(label), minor: Number(minor), refundDays: Number(refundDays) },
  ...{ words: `coffee maker ${words}`.split(' '), stock: 100 },
}))

export const findProduct = (sku: string): Product =>
  catalogue.find((one) => one.sku === sku) ?? refuse(`"${sku}" is not sold here.`)

/** The products that a text asks for, the best match first. */
export const searchCatalogue = (text: string, isWanted: (product: Product) => boolean): Product[] => {
  const asked = new Set(text.toLowerCase().match(/\p{L}+/gu))
  const scored = catalogue
    .filter(isWanted)
    .map((product) => ({ product, score: product.words.filter((word) => asked.has(word)).length }))
    .filter(({ score }) => score > 0)
  return scored
    .sort((one, other) => other.score - one.score)
    .slice(0, 3)
    .map(({ product }) => product)
}

/** Of what an order is made up. Integers alone: tax is rounded half up, once. */
export const priceOrder = ({ label, minor, refundDays }: Product, country: string) => {
  const isHome = country === 'US'
  const [shipping, basisPoints] = isHome ? [200, 25] : [1500, 0]
  const tax = Math.floor((minor * basisPoints + 5000) / 10_000)
  const toMoney = (amount: number): Money => ({ currency, minor: amount })
  const items = [
    { label, amount: toMoney(minor), refund_period: refundDays },
    { label: 'Shipping', amount: toMoney(shipping), refund_period: refundDays },
    { label: 'Tax', amount: toMoney(tax), refund_period: refundDays },
  ]
  return {
    items,
    shipping,
    tax,
    total: { label: 'Total', amount: toMoney(minor + shipping + tax), refund_period: refundDays },
  }
}
