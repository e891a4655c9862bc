import { readFile } from 'node:fs/promises'
import { beforeAll, expect, test } from 'vitest'
import { play } from './play.ts'

/** 120 questions of a manager over the table of the README: each figure is computed here from its rows, apart from any SQL. */

const file = new URL('../../../examples/data/orders.csv', import.meta.url)
type Order = Record<'id' | 'date' | 'customer' | 'region' | 'product' | 'status', string> & {
  quantity: number
  price: number
  value: number
}
const text = await readFile(file, 'utf8')
const orders: Order[] = text
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => {
    const [id = '', date = '', customer = '', region = '', product = '', ...rest] = line.split(',')
    const [quantity, price] = rest.slice(0, 2).map(Number) as [number, number]
    return {
      id,
      date,
      customer,
      region,
      product,
      status: rest[2] ?? '',
      quantity,
      price,
      value: quantity * price,
    }
  })

type Is = (order: Order) => boolean
const show = (value: number): string =>
  `**${(Math.round(value * 1e6) / 1e6).toLocaleString('en-US', { maximumFractionDigits: 6 })}**`
const count = (is: Is = () => true): string => show(orders.filter(is).length)
const sum = (field: 'quantity' | 'value', is: Is = () => true): string =>
  show(orders.filter(is).reduce((total, order) => total + order[field], 0))
/** The group with the most, or the least, of something. */
const first = (
  by: (order: Order) => string,
  of: (order: Order) => number,
  sign = 1,
  is: Is = () => true,
): string => {
  const totals = new Map<string, number>()
  for (const order of orders.filter(is)) totals.set(by(order), (totals.get(by(order)) ?? 0) + of(order))
  return [...totals].toSorted(([, a], [, b]) => sign * (b - a))[0]?.[0] ?? ''
}
const inMonth =
  (month: string): Is =>
  (order) =>
    order.date.startsWith(`2025-${month}`)
const is =
  (field: 'region' | 'status' | 'product', value: string): Is =>
  (order) =>
    order[field] === value
const both =
  (...all: Is[]): Is =>
  (order) =>
    all.every((one) => one(order))
const one = (): number => 1
const average = (): string => show(orders.reduce((total, { value }) => total + value, 0) / orders.length)

/** With what a right answer has in it; null: no rule can answer it. */
const questions: [question: string, right: string | null][] = [
  ['How many orders are over 1000?', count(({ value }) => value > 1000)],
  ['How many orders were returned?', count(is('status', 'returned'))],
  ['How many orders were returned in North?', count(both(is('status', 'returned'), is('region', 'North')))],
  ['How many orders were not completed?', count((order) => order.status !== 'completed')],
  ['What is the total revenue?', sum('value')],
  ['What is the total revenue of North?', sum('value', is('region', 'North'))],
  [
    'Which region has the highest revenue?',
    `**${first(
      (o) => o.region,
      (o) => o.value,
    )}**`,
  ],
  ['Which customer placed the most orders?', `**${first((o) => o.customer, one)}**`],
  [
    'Top 3 products by quantity',
    `1. ${first(
      (o) => o.product,
      (o) => o.quantity,
    )}`,
  ],
  ['How many customers are there?', show(new Set(orders.map(({ customer }) => customer)).size)],
  ['How many units were sold in March?', sum('quantity', inMonth('03'))],
  ['What is the average order value?', average()],
  ['Revenue by month', '2025-03: '],
  ['How many orders in February were cancelled?', count(both(inMonth('02'), is('status', 'cancelled')))],
  ['How many orders had a quantity of at least 10?', count(({ quantity }) => quantity >= 10)],
  ['How many orders were between 500 and 1000?', count(({ value }) => value >= 500 && value <= 1000)],
  ['How many orders were completed or shipped?', count(({ status }) => /completed|shipped/.test(status))],
  ['How many orders have a unit price under 30?', count(({ price }) => price < 30)],
  ['Total quantity per region', 'East: '],
  ['List all cancelled orders', orders.find(({ status }) => status === 'cancelled')?.id ?? ''],
  ['What is the status of SO-1044?', '**completed**'],
  ['What share of the orders was returned?', null],
  ['How many orders were placed after 2025-03-01?', null],
  ['How many orders were placed before March?', null],
  ['How many more orders did East have than West?', null],
  ['Who is our second best customer?', null],
  ['How many orders were returned or in the North?', null],
  ['What was the revenue in Q1?', null],
  ['How many days lie between the first and the last order?', null],
  ['Which customers have never returned anything?', null],
  ['What is the median order value?', null],
  ['How many pending orders are there?', null],
  ['How many orders does a customer place on average?', null],
  ['北区退了几单？', count(both(is('status', 'returned'), is('region', 'North')))],
  ['有多少订单？', count()],
  ['有多少订单退货了？', count(is('status', 'returned'))],
  ['总销售额是多少？', sum('value')],
  ['北区的总销售额是多少？', sum('value', is('region', 'North'))],
  [
    '哪个地区的销售额最高？',
    `**${first(
      (o) => o.region,
      (o) => o.value,
    )}**`,
  ],
  [
    '销售额最低的地区是哪个？',
    `**${first(
      (o) => o.region,
      (o) => o.value,
      -1,
    )}**`,
  ],
  ['哪个客户的订单最多？', `**${first((o) => o.customer, one)}**`],
  ['有多少个客户？', show(new Set(orders.map(({ customer }) => customer)).size)],
  ['3月的总销售额', sum('value', inMonth('03'))],
  ['按地区统计销售额', 'East: '],
  ['超过1000的订单有几单？', count(({ value }) => value > 1000)],
  ['没有完成的订单有几单？', count((order) => order.status !== 'completed')],
  ['取消的订单有几个？', count(is('status', 'cancelled'))],
  ['2025年2月有多少订单？', count(inMonth('02'))],
  ['南区完成了几单？', count(both(is('status', 'completed'), is('region', 'South')))],
  ['单价低于30的订单有几单？', count(({ price }) => price < 30)],
  ['Monitor arm 卖了多少件？', sum('quantity', is('product', 'Monitor arm'))],
  ['平均订单金额是多少？', average()],
  ['1000以上的订单有几单？', null],
  ['退货率是多少？', null],
  ['东区比西区多几单？', null],
  ['三月份退了多少单？', null],
  ['上个月的销售额是多少？', null],
  ['哪些客户没退过货？', null],
  ['第二大客户是谁？', null],
  ['待付款的订单有几单？', null],
]

/** What a question leaves out, says in two parts, or counts by customer: half of it answered would be wrong. */
const traps: [question: string, right: string | null][] = [
  ['Excluding returns, how many orders are there?', null],
  ['Of the March orders, how many were returned?', null],
  ['How many orders did Bakker & Zoon place and how many were returned?', null],
  ['How many orders of the North were returned and what is the total revenue?', null],
  ['Which customer placed the most orders? How much did they spend?', null],
  ['How many orders were shipped, not completed?', null],
  ['How many orders of markers were placed?', null],
  ['How many orders from 2025-03-21 on?', null],
  ['How many orders were placed on 2025-03-21 and 2025-03-26?', null],
  [
    'How many orders were placed from 2025-03-21 to 2025-03-26?',
    count(({ date }) => date >= '2025-03-21' && date <= '2025-03-26'),
  ],
  [
    'How many orders were placed between 2025-03-21 and 2025-03-26?',
    count(({ date }) => date >= '2025-03-21' && date <= '2025-03-26'),
  ],
  ['How many orders are there from SO-1050 to SO-1060?', null],
  ['How many orders do North and South have each?', null],
  ['How many customers placed more than 5 orders?', null],
  ['How many regions have more than 15 orders?', null],
  ['How many customers bought at least 2 products?', null],
  ['How many customers have no returned orders?', null],
  ['Which region does not sell Standing desk?', null],
  ['How many customers ordered Whiteboard and Cable kit?', null],
  ['How many % of orders were returned?', null],
  ['How many orders have status <> returned?', null],
  ['Which order has the highest unit price?', 'SO-1085'],
  ['Which order is the cheapest?', 'SO-1086'],
  ['What is the largest order?', 'SO-1074'],
  ['What is the latest order?', 'SO-1100'],
  ['Which region has the most orders?', '**South**, **West**, 16'],
  ['List all orders', 'only the first of more'],
  ['Revenue by date', '2025-01-24: 111.6'],
  ['How many orders were returned in the North and cancelled in the East?', null],
  [
    'How many orders were returned in the North and in the East?',
    count(({ region, status }) => status === 'returned' && /North|East/.test(region)),
  ],
  ['What did Bakker & Zoon buy most?', null],
  ['Which product did the North return most?', null],
  ['What is the total quantity of orders over 1000?', sum('quantity', ({ value }) => value > 1000)],
  ['How many orders of more than 10 units are there?', count(({ quantity }) => quantity > 10)],
  [
    'How many orders have more than 10 units and were returned?',
    count(({ quantity, status }) => quantity > 10 && status === 'returned'),
  ],
  ['How many orders did the North place and how many did the South place?', count(is('region', 'South'))],
  ['How many orders were completed and how many were cancelled?', count(is('status', 'cancelled'))],
  ['How many orders were not in the North or South?', null],
  ['How many orders of this customer are there?', null],
  ['Did its revenue grow? What is its total revenue?', null],
  ['除了退货，还有多少订单？', null],
  ['除北区外，一共有多少订单？', null],
  ['如果不算取消的订单，总销售额是多少？', null],
  ['查一下退货，有几单是北区的？', null],
  [
    'Delta Outfitters 的订单，退了几单？',
    count(({ customer, status }) => customer === 'Delta Outfitters' && status === 'returned'),
  ],
  ['北区有几单，退了几单？', null],
  ['北区有几单，南区有几单？', count(is('region', 'South'))],
  ['卖得最多的东西是什么？', null],
  ['东西区一共有多少订单？', count(({ region }) => /East|West/.test(region))],
  ['东区和西区一共有多少订单？', count(({ region }) => /East|West/.test(region))],
  ['超过10件的订单有几个？', count(({ quantity }) => quantity > 10)],
  ['数量大于15的订单有几个？', count(({ quantity }) => quantity > 15)],
  ['超过5单的客户有几个？', null],
  ['北区退货、东区取消的订单有几单？', null],
  ['没有退货的客户有几个？', null],
  ['哪个产品退货最多？', null],
  ['最贵的订单是哪个？', 'SO-1074'],
  ['哪个地区的订单最多？', '**South**, **West**, 16'],
  ['退货的订单占%多少？', null],
  ['从2025-03-21到2025-03-26有多少订单？', null],
]

const outcomes = { right: [] as string[], refused: [] as string[], wrong: [] as string[] }
beforeAll(async () => {
  for (const [question, right] of [...questions, ...traps]) {
    const { text: answer, closing } = await play(question, { files: { 'orders.csv': text } })
    const isRefused = /I do not know what "[^"]+" asks for|不清楚“[^”]+”所问的是什么/.test(answer)
    const isDone = JSON.stringify(closing).includes('"completed"')
    const isRight = right !== null && answer.includes(right) && !isRefused
    const kind = isRight ? 'right' : isRefused && !isDone ? 'refused' : 'wrong'
    outcomes[kind].push(`${question} -> ${answer.slice(0, 120)}`)
  }
})

test('the offline model answers none of 120 questions of a manager wrong: it refuses and names a word that it did not use', () => {
  expect([...questions, ...traps]).toHaveLength(120)
  expect(outcomes.wrong).toEqual([])
})

test('the offline model answers at least 45 of them', () => {
  expect(outcomes.right.length, outcomes.refused.join('\n')).toBeGreaterThanOrEqual(45)
})

test.for([
  ['How many orders were placed after 2025-03-01?', '"after"'],
  ['How many more orders did East have than West?', '"more"'],
  ['What is the median order value?', '"median"'],
  ['How many pending orders are there?', '"pending"'],
  ['退货率是多少？', '“率”'],
  ['1000以上的订单有几单？', '“1000”'],
])('it refuses "%s" for %s, and no task is completed', async ([question = '', word = '']) => {
  const { text: answer, closing } = await play(question, { files: { 'orders.csv': text } })
  expect(answer).toContain(word)
  expect(answer).not.toContain('**')
  expect(JSON.stringify(closing)).not.toContain('"completed"')
})
