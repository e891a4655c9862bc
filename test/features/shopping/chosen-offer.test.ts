import { expect, test } from 'vitest'
import { findChosenOffer } from '../../../src/features/shopping/chosen-offer.ts'

const toOffer = (cart_id: string, label: string, minor: number, currency = 'USD') => ({
  ...{ version: '0.1' as const, cart_id, label, total: { currency, minor, text: `$${minor / 100}` } },
  ...{ lines: [], expires_at: null, refund_days: null, merchant: null },
})
const best = toOffer('cart_3', 'Professional machine', 59_999)
const middle = toOffer('cart_2', 'Automatic machine', 24_900)
const small = toOffer('cart_1', 'Compact maker', 8999)
const choose = (answer: string, shown = [best, middle, small]) => findChosenOffer(answer, shown)?.cart_id

test.each([
  ...['2', '#2', 'No. 2', 'option 2', '2.', '2nd', 'the second one', 'Second', '第二个', '二', '2号', '２'],
  ...['cart_2', 'Automatic machine', ' automatic MACHINE ', 'Automatic machine, $249'],
])('the answer "%s" names the second offer of the list', (answer) => expect(choose(answer)).toBe('cart_2'))

test('the cheapest offer is named by that, and the cheaper one of two', () => {
  for (const answer of ['the cheapest one', 'Cheapest', '最便宜的', '最便宜的那个'])
    expect([answer, choose(answer)]).toEqual([answer, 'cart_1'])
  for (const answer of ['the cheaper one', '便宜的那个', 'cheapest'])
    expect([answer, choose(answer, [best, middle])]).toEqual([answer, 'cart_2'])
})

test.each([
  ...[
    'the cheaper one',
    'cart_9',
    '0',
    '4',
    'the fourth one',
    '第十个',
    'machine',
    'none',
    'the red one',
    '',
  ],
  ...['not the cheapest', '2 of them', 'first and second', '不要第二个'],
])('the answer "%s" names none of three offers', (answer) => expect(choose(answer)).toBeUndefined())

test('neither of two offers at one price, or in two currencies, is the cheapest', () => {
  const equal = [small, toOffer('cart_4', 'Other maker', 8999)]
  expect(choose('the cheapest', equal)).toBeUndefined()
  expect(choose('the cheaper one', [small, toOffer('cart_5', 'Maker', 1, 'JPY')])).toBeUndefined()
  expect(choose('Compact maker', [small, small])).toBeUndefined()
})

test('an answer that names one offer by its place and another by its cart id or name names neither', () => {
  const ids = [toOffer('2', 'Red mug', 900), toOffer('1', 'Blue mug', 800), toOffer('cheapest', 'Vase', 999)]
  for (const answer of ['1', '2', 'cheapest'])
    expect([answer, choose(answer, ids)]).toEqual([answer, undefined])
  expect(['#1', 'second', 'the cheapest', 'Vase'].map((answer) => choose(answer, ids))).toEqual([
    ...['2', '1', '1', 'cheapest'],
  ])
  expect(choose('1', [toOffer('cart_6', '2', 500), small])).toBe('cart_6')
  expect(choose('2', [toOffer('cart_6', '2', 500), small])).toBeUndefined()
  expect(choose('2', [small, toOffer('2', 'No. 2', 500)])).toBe('2')
})

test('a name that reads like a place in the list names its offer', () => {
  const perfumes = [small, toOffer('cart_7', 'No. 5', 12_000), toOffer('cart_8', '7', 1500)]
  for (const answer of ['No. 5', 'no. 5', 'No. 5, $120'])
    expect([answer, choose(answer, perfumes)]).toEqual([answer, 'cart_7'])
  expect(choose('7', perfumes)).toBe('cart_8')
  expect(choose('cart_9', perfumes)).toBeUndefined()
})
