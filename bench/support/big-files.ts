import { createWriteStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { pdfOf } from '../../test/support/file-samples.ts'

const words =
  'the order of a customer in north and south was late because its parts had not been paid for'.split(' ')
const line = (page: number, at: number): string =>
  Array.from({ length: 14 }, (_, n) => words[(page * 7 + at * 3 + n * n) % words.length]).join(' ')

/** A document of text, 30 lines a page under a heading. */
export const writePdf = async (path: string, pages: number): Promise<void> => {
  const texts = Array.from({ length: pages }, (_, page) => [
    `Chapter ${page + 1}`,
    ...Array.from({ length: 30 }, (_, at) => line(page, at)),
  ])
  await writeFile(path, await pdfOf(texts))
}

const regions = ['north', 'south', 'east', 'west']
const row = (n: number): string =>
  `${n},2026-${String(1 + (n % 12)).padStart(2, '0')}-${String(1 + (n % 28)).padStart(2, '0')},${regions[n % 4]},product ${n % 997},${n % 50},${((n * 7919) % 100_000) / 100},${n % 9 === 0},${words[n % words.length]}\n`

function* rows(count: number): Generator<string> {
  yield 'id,day,region,product,quantity,price,returned,note\n'
  for (let from = 0; from < count; from += 1000)
    yield Array.from({ length: Math.min(1000, count - from) }, (_, n) => row(from + n)).join('')
}

/** Eight columns: numbers, days, few and many different texts, yes and no. */
export const writeCsv = (path: string, count: number): Promise<void> =>
  pipeline(Readable.from(rows(count)), createWriteStream(path))
