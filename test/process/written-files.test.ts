// tier: all

import { join } from 'node:path'
import { expect } from 'vitest'
import { jsonLines, runCli } from '../support/cli.ts'
import type { FakeRequest, FakeToolCall } from '../support/fake-model/types.ts'
import { openFolder } from '../support/file-samples.ts'
import { test } from '../support/integration-test.ts'
import { expectations, writtenFolder } from '../support/written-files.ts'

type ListedFile = { notes: string[]; tables: string[] }

const textOf = ({ messages }: FakeRequest): string =>
  messages.map(({ content }) => (typeof content === 'string' ? content : '')).join('\n')

/** The files as the planner's prompt lists them. */
const readListedFiles = (prompt: string): Map<string, ListedFile> => {
  const files = new Map<string, ListedFile>()
  let file: ListedFile | undefined
  for (const line of prompt.split('\n')) {
    const [, name] = /^- (.+) \([^()]*\)$/.exec(line) ?? []
    if (name !== undefined) {
      file = { notes: [], tables: [] }
      files.set(name, file)
    }
    const [, table] = /^ {2}table for query_table: (.+?), \d+ rows/.exec(line) ?? []
    const [, note] = /^ {2}note: (.+)$/.exec(line) ?? []
    if (table !== undefined) file?.tables.push(table)
    if (note !== undefined) file?.notes.push(note)
  }
  return files
}

/** What a model asks for that wants to know what is in a file. */
const toCall = (name: string, { tables }: ListedFile): FakeToolCall =>
  tables[0] === undefined
    ? { id: name, name: 'read_file', arguments: { file_path: name } }
    : { id: name, name: 'query_table', arguments: { sql: `SELECT * FROM ${tables[0]}` } }

/** One of each format, and of each kind of note: the unit tests read all of them. */
const chosen = Object.entries(expectations).filter(
  ([, { format, note }], at, all) =>
    all.findIndex(([, other]) => other.format === format && String(other.note) === String(note)) === at,
)

test('mason run --file answers from files of other programs, or their notes name the true reason', async ({
  model,
}) => {
  await using folder = await openFolder()
  const read = chosen.filter(([, { fact }]) => fact !== undefined)
  expect(chosen.length).toBeGreaterThan(20)
  model.script((request) => {
    if (request.role !== 'planner') return undefined
    const listed = readListedFiles(textOf(request))
    const results = request.messages.filter(({ role }) => role === 'tool')
    if (results.length === 0)
      return { tool_calls: read.map(([name]) => toCall(name, listed.get(name) ?? { notes: [], tables: [] })) }
    const found = request.messages
      .flatMap(({ tool_calls = [] }) => tool_calls as { id: string }[])
      .map(({ id }) => [id, String(results.find(({ tool_call_id }) => tool_call_id === id)?.content)])
    const notes = [...listed].map(([name, { notes }]) => [name, notes.join('; ')])
    return { text: JSON.stringify({ found: Object.fromEntries(found), notes: Object.fromEntries(notes) }) }
  })
  const { code, stdout } = await runCli(
    [
      'run',
      'What do they say?',
      '--json',
      ...chosen.flatMap(([name]) => ['--file', join(writtenFolder, name)]),
    ],
    { cwd: folder.path, env: { OPENAI_BASE_URL: model.baseUrl, OPENAI_MODEL: 'fake-model' } },
  )
  expect(code).toBe(0)
  const { found, notes } = JSON.parse(String(jsonLines(stdout).at(-1)?.data.answer)) as Record<
    'found' | 'notes',
    Record<string, string>
  >
  const wrong = chosen.flatMap(([name, { format, fact, note, parts = [] }]) => {
    const unseen = name.endsWith('.tiff')
      ? /models see PNG, JPEG, GIF and WebP/
      : /no model that sees is set up/
    const reason = note ?? (format === 'image' ? unseen : /^$/)
    const isRight =
      (fact === undefined || found?.[name]?.includes(fact)) &&
      reason.test(notes?.[name] ?? 'it is not listed') &&
      parts.every((part) => notes?.[`${name}/${part}`] !== undefined)
    return isRight ? [] : [{ name, found: found?.[name], note: notes?.[name] }]
  })
  expect(wrong).toEqual([])
})
