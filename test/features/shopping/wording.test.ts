import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { loadAllParts } from '../../../src/app/load-all-parts.ts'
import { findPrice } from '../../../src/features/shopping/find-price.ts'
import { isYes, toRelativeTime } from '../../../src/features/shopping/wording.ts'
import { scenarioSchemas } from '../../../src/state/scenario.ts'

test.each([
  'a coffee maker under $100',
  'coffee maker, less than 100',
  'a maker for 80 euros',
  'red shoes, USD 50 at most',
  'budget of about 200',
  'shoes up to 90, in red',
  '咖啡机，预算500元',
  '预算五百元的咖啡机',
  '咖啡机，三千块以内',
  '500以内的咖啡机',
  '不要超过一千二百',
  '５００元左右',
  '八百人民币的咖啡機',
  'a maker under five hundred dollars',
  'less than a hundred, in red',
  'not more expensive than 100',
])('a price is found in "%s"', (text) => expect(findPrice(text)).not.toBeNull())

test.each([
  'espresso coffee maker with 15 bar',
  'a shelf under 30 cm, for 12 cups',
  'size 42 running shoes, model 990',
  'holds up to 8 people',
  'a 2-in-1 laptop with 16 GB',
  '一台两人用的咖啡机，15巴，1000瓦',
  '不超过三千五百克，不超过30厘米',
  '最多用十年的一块表，200ml以内',
  'for less than a hundred people, one of five',
])('no price is found in "%s"', (text) => expect(findPrice(text)).toBeNull())

test('an answer says yes only where it says nothing else', () => {
  const agreed = ['Yes', 'yes.', 'go ahead', '好的', '好的，继续吧！', '没问题', '可以的。', '嗯']
  expect(agreed.filter((answer) => !isYes(answer))).toEqual([])
  const other = ['yes but red', 'No', 'not yes', '', 1, '不好', '好像不对', '不，继续', '可以换红色吗']
  expect(other.filter(isYes)).toEqual([])
})

test('a time is relative and rounded', () => {
  const now = new Date('2026-01-01T00:00:00Z')
  const tell = (ms: number) => toRelativeTime(new Date(now.getTime() + ms).toISOString(), now)
  expect([3_600_000, 172_800_000, 1_799_000, 20_000, -1].map(tell)).toEqual([
    ...['in 1 hour', 'in 2 days', 'in 30 minutes', 'in 1 minute', 'expired'],
  ])
})

test.each(['shopping', 'open-mandate'])(
  'the template of the scenario %s is one that an admin can add, of tools that there are',
  async (name) => {
    const file = new URL(`../../../templates/scenarios/${name}.json`, import.meta.url)
    const scenario = scenarioSchemas.input.parse(JSON.parse(readFileSync(file, 'utf8')))
    const { tools } = await loadAllParts()
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(scenario.tools ?? []))
  },
)
