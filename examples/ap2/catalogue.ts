import type { Money } from '../../src/features/payments/mandates/money.ts'
import { refuse } from './messages.ts'
import catalogue from './products.json' with { type: 'json' }

/** What the merchant sells. Prices are minor units, without shipping and tax; the better match of two equal ones is first. */
export type Product = (typeof catalogue)[number]

export const currency = 'USD'

export const findProduct = (sku: string): Product =>
  catalogue.find((one) => one.sku === sku) ?? refuse(`"${sku}" is not sold here.`)

/** The products that a text asks for, the best match first. */
export const searchCatalogue = (text: string, isWanted: (product: Product) => boolean): Product[] => {
  const asked = new Set(text.toLowerCase().match(/\p{L}+/gu))
  const scored = catalogue
    .filter(isWanted)
    .map((product) => ({ product, score: product.words.split(' ').filter((word) => asked.has(word)).length }))
    .filter(({ score }) => score > 0)
  return scored
    .sort((one, other) => other.score - one.score)
    .slice(0, 3)
    .map(({ product }) => product)
}

/** Of what an order is made up. Integers alone: tax is rounded half up, once. */
export const priceOrder = ({ label, minor, refundDays: refund_period }: Product, country: string) => {
  const [shipping, basisPoints] = country === 'US' ? [200, 25] : [1500, 0]
  const tax = Math.floor((minor * basisPoints + 5000) / 10_000)
  const toItem = (name: string, amount: number) => {
    const money: Money = { currency, minor: amount }
    return { label: name, amount: money, refund_period }
  }
  const items = [toItem(label, minor), toItem('Shipping', shipping), toItem('Tax', tax)]
  return { items, shipping, tax, total: toItem('Total', minor + shipping + tax) }
}
