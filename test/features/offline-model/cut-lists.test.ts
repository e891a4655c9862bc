import { expect, test } from 'vitest'
import { play } from './play.ts'

const names = Array.from({ length: 70 }, (_, at) => `Item${at + 100}`)
const ask = async (question: string, figure: (at: number) => number): Promise<string> => {
  const lines = names.map((name, at) => `${name},${figure(at)}`)
  const { text } = await play(question, { files: { 'items.csv': `product,revenue\n${lines.join('\n')}\n` } })
  return text
}
const cut = 'only the first of more'

test('a ranked list that is cut says so', async () => {
  expect(await ask('top 60 products by revenue', (at) => at)).toContain(cut)
  expect(await ask('Which product has the highest revenue?', () => 5)).toContain(cut)
  expect(await ask('top 3 products by revenue', (at) => at)).not.toContain(cut)
})
