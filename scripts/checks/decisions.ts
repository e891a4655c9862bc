import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Check } from '../check-repository.ts'
import { root } from '../source-tree.ts'

const folder = join(root, 'docs/decisions')
const link = /\[decision \d+\]\(\d{4}-[\w-]+\.md\)/.source
const status = `accepted|dropped|(?:accepted, in part )?replaced by ${link}(?:(?:, | and )${link})*`
/** The first two lines of a record: its number and title, its date and status. */
const front = new RegExp(`^# (\\d+)\\. (.+)\\nDate: (\\d{4}-\\d\\d-\\d\\d)\\. Status: (${status})\\.\\n\\n`)

const index = readFileSync(join(folder, 'README.md'), 'utf8')
const rows = index.split('\n').filter((line) => /^\| \d/.test(line))
const records = readdirSync(folder)
  .filter((file) => file !== 'README.md')
  .map((file) => ({ file, head: front.exec(readFileSync(join(folder, file), 'utf8')) }))
const expected = records.flatMap(({ file, head }) =>
  head ? [`| ${head[1]} | [${head[2]}](${file}) | ${head[3]} | ${head[4]} |`] : [],
)

/** What the records of decisions and their index keep to. */
export const decisions: readonly Check[] = [
  [
    'a decision does not begin with "# N. Title" and "Date: YYYY-MM-DD. Status: accepted, replaced by [decision N](file), or dropped."',
    () =>
      records
        .filter(({ file, head }) => !head || Number(head[1]) !== Number(file.slice(0, 4)))
        .map(({ file }) => file),
  ],
  [
    'docs/decisions/README.md has no such row, which a record says',
    () => expected.filter((row) => !rows.includes(row)),
  ],
  [
    'docs/decisions/README.md has a row twice, or one that no record says',
    () => rows.filter((row, at) => rows.indexOf(row) !== at || !expected.includes(row)),
  ],
]
