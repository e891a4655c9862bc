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
])('a price is found in "%s"', (text) => expect(findPrice(text)).not.toBeNull())

test.each([
  'espresso coffee maker with 15 bar',
  'a shelf under 30 cm, for 12 cups',
  'size 42 running shoes, model 990',
  'holds up to 8 people',
  'a 2-in-1 laptop with 16 GB',
])('no price is found in "%s"', (text) => expect(findPrice(text)).toBeNull())

test('an answer says yes only where it says nothing else', () => {
  expect(['Yes', 'yes.', 'go ahead', '好的'].map(isYes)).toEqual([true, true, true, true])
  expect(['yes but red', 'No', 'not yes', '', 1].map(isYes)).toEqual(Array(5).fill(false))
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
