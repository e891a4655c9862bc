import { expect, test } from 'vitest'
import readFile from '../../src/tools/files/read-file.tool.ts'
import { visitTool } from '../support/tool-context.ts'

const numbered = (count: number): string =>
  Array.from({ length: count }, (_, at) => `row ${at + 1}\n`).join('')
const read = (input: Record<string, unknown>, content: string | Uint8Array = numbered(5)) =>
  visitTool(readFile, { input: { file_path: 'a.txt', ...input }, files: { 'a.txt': content } })

/** Follows the `[more: …]` of page after page and gives all lines shown. */
const readAll = async (content: string, more: Record<string, unknown> = {}): Promise<string[]> => {
  const shown: string[] = []
  let start_line: number | undefined = 1
  while (start_line !== undefined) {
    const { text } = await read({ start_line, ...more }, content)
    expect(Buffer.byteLength(text)).toBeLessThan(101 * 1024)
    const lines = text.split('\n').slice(1)
    const next: string | undefined = /^\[more: call read_file again with start_line=(\d+)\]$/.exec(
      lines.at(-1) ?? '',
    )?.[1]
    shown.push(...(next === undefined ? lines : lines.slice(0, -1)))
    start_line = next === undefined ? undefined : Number(next)
  }
  return shown
}

test('read_file gives the lines with their numbers', async () => {
  const { text, action } = await read({})
  expect(text).toBe("File 'a.txt', lines 1-5 of 5:\n1: row 1\n2: row 2\n3: row 3\n4: row 4\n5: row 5")
  expect(action).toMatchObject({ summary: 'Read 5 lines of a.txt', result: { first: 1, last: 5, total: 5 } })
})

test('read_file gives a part, and does not offer more than was requested', async () => {
  expect((await read({ start_line: 2, end_line: 3 })).text).toBe(
    "File 'a.txt', lines 2-3 of 5:\n2: row 2\n3: row 3",
  )
  expect((await read({ start_line: 5, end_line: 99 })).text).toBe("File 'a.txt', lines 5-5 of 5:\n5: row 5")
})

test('read_file shows only the lines that match', async () => {
  expect((await read({ pattern: '[24]$' })).text).toBe("File 'a.txt', lines 1-5 of 5:\n2: row 2\n4: row 4")
  const none = await read({ pattern: 'nowhere' })
  expect(none.text).toBe("File 'a.txt', lines 1-5 of 5:\nNo lines match pattern 'nowhere'.")
  expect(none.action.result.found).toBe(0)
  expect(none.isError).toBe(false)
})

test('read_file gives every line exactly once over the pages', async () => {
  const expected = (count: number) => Array.from({ length: count }, (_, at) => `${at + 1}: row ${at + 1}`)
  expect(await readAll(numbered(2000))).toEqual(expected(2000))
  expect(await readAll(numbered(4321))).toEqual(expected(4321))
  expect(await readAll(numbered(5000), { pattern: 'row' })).toEqual(expected(5000))
  expect(await readAll(numbered(5000), { end_line: 2001 })).toEqual(expected(2001))
  expect(await readAll(`${'好'.repeat(3000)}\n`.repeat(100))).toHaveLength(100)
})

test('a line of any length leaves room to go on', async () => {
  const { text } = await read({}, `${'好'.repeat(1_000_000)}\nlast`)
  expect(text).toContain('…')
  expect(text).toContain('[cut: the line has 1000000 characters]')
  expect(text.endsWith('\n2: last')).toBe(true)
})

test.each([
  [{ start_line: 6 }, "Error: start_line 6 is behind the end of 'a.txt', which has 5 lines."],
  [{ start_line: 3, end_line: 2 }, 'Error: end_line 2 is before start_line 3.'],
  [{ pattern: '(' }, "Error: Invalid pattern '(': missing closing )"],
  [{ file_path: 'b.txt' }, "Error: File not found at path 'b.txt'.\nFiles there are: a.txt."],
])('the input %o is an error the model can act on', async (input, fault) => {
  const { text, isError, action } = await read(input)
  expect(text).toContain(fault)
  expect(isError).toBe(true)
  expect(action.summary).toMatch(/^Could not read /)
})

test('read_file handles an empty file and a binary one', async () => {
  expect(await read({}, '')).toMatchObject({ text: "File 'a.txt' is empty.", isError: false })
  expect(await read({}, Uint8Array.of(0, 1, 2))).toMatchObject({ isError: true })
})

test('read_file refuses line numbers below 1 by its schema', () => {
  expect(readFile.input.safeParse({ file_path: 'a', start_line: 0 }).success).toBe(false)
  expect(readFile.input.safeParse({ file_path: 'a', lines: 3 }).success).toBe(false)
})

test('the prepared content of a file is not used for another file with its name', async () => {
  const shows = { description: 'A red barn.', text: '', by: 'eye' }
  const readWith = (from: string) => {
    const image = { from, format: 'image', readable: true, facts: { shows }, notes: [] }
    const document = { from, format: 'pdf', title: null, pages: 9, lines: 5, chars: 30, text: null, head: '' }
    return visitTool(readFile, {
      input: { file_path: 'a.txt' },
      files: { 'a.txt': 'new words' },
      state: {
        origin_files: [{ name: 'a.txt', type: '', local_path: 'blob:new', mapping: null }],
        preprocessed_files: {
          documents: { 'a.txt': { ...document, sections: [], page_lines: [1], notes: [] } },
          tables: {},
          other_files: { 'a.txt': image },
        },
      },
    })
  }
  expect((await readWith('blob:new')).text).toContain('A red barn.')
  expect((await readWith('blob:old')).text).toBe("File 'a.txt', lines 1-1 of 1:\n1: new words")
})
