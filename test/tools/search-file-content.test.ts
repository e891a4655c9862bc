import { describe, expect, test } from 'vitest'
import searchFileContent from '../../src/tools/files/search-file-content.tool.ts'
import { visitTool } from '../support/tool-context.ts'

const source = [
  'import re',
  ...Array.from({ length: 23 }, () => ''),
  '    def execute_instruction(self, instruction_block):',
]
const files = { 'core/orchestrator.py': source.join('\n') }
const search = (input: unknown, given: Record<string, string | Uint8Array> = files) =>
  visitTool(searchFileContent, { input, files: given })

describe('the texts of the dialogue', () => {
  test('a match', async () => {
    const { text, isError, action } = await search({
      file_path: 'core/orchestrator.py',
      pattern: 'def\\s+execute_instruction',
    })
    expect(text).toBe(
      "Matches in 'core/orchestrator.py': [Line 25: def execute_instruction(self, instruction_block):]",
    )
    expect(isError).toBe(false)
    expect(action).toMatchObject({ summary: 'Found 1 line in core/orchestrator.py', result: { found: 1 } })
  })

  test('several matches', async () => {
    const { text, action } = await search(
      { file_path: './a.csv', pattern: '^2' },
      { 'a.csv': 'id\r\n21\r\n12\r\n22\r\n' },
    )
    expect(text).toBe("Matches in './a.csv': [Line 2: 21], [Line 4: 22]")
    expect(action.summary).toBe('Found 2 lines in a.csv')
  })

  test('no match is no error', async () => {
    const { text, isError } = await search({ file_path: 'core/orchestrator.py', pattern: 'def\\s+other' })
    expect(text).toBe("No matches found in 'core/orchestrator.py' for pattern 'def\\s+other'.")
    expect(isError).toBe(false)
  })

  test('a file that is not of this run, whatever else is on the machine', async () => {
    const { text, isError, action } = await search({ file_path: '/etc/passwd', pattern: 'root' })
    expect(text).toBe("Error: File not found at path '/etc/passwd'.\nFiles there are: core/orchestrator.py.")
    expect(isError).toBe(true)
    expect(action.context).toBeNull()
    const none = await search({ file_path: 'x', pattern: 'y' }, {})
    expect(none.text).toBe("Error: File not found at path 'x'.\nThere are no files in this run.")
  })

  test('a bad pattern', async () => {
    const { text, isError } = await search({ file_path: 'core/orchestrator.py', pattern: 'def (' })
    expect(text).toMatch(/^Error: Invalid pattern 'def \(': missing closing \): /)
    expect(isError).toBe(true)
  })

  test('a binary file', async () => {
    const { text, isError } = await search(
      { file_path: 'a.png', pattern: 'x' },
      { 'a.png': Uint8Array.of(0x89, 0x50, 0, 1) },
    )
    expect(text).toContain("Error: 'a.png' is a binary file")
    expect(isError).toBe(true)
  })
})

describe('bounds', () => {
  test('200 matches are shown and the others counted', async () => {
    const { text, action } = await search({ file_path: 'a', pattern: 'x' }, { a: 'x\n'.repeat(1234) })
    expect(text.match(/\[Line /g)).toHaveLength(200)
    expect(text.endsWith('[Line 200: x] (and 1034 more matching lines)')).toBe(true)
    expect(action.result.found).toBe(1234)
  })

  test('a long line shows the part that matched', async () => {
    const start = await search({ file_path: 'a', pattern: '^start' }, { a: `start${'😀'.repeat(900)}` })
    expect(start.text).toMatch(/: start(😀)+…\]$/u)
    expect(start.text.length).toBeLessThan(540)
    const middle = await search(
      { file_path: 'a', pattern: 'needle' },
      { a: `${'a '.repeat(5000)}needle${' b'.repeat(5000)}` },
    )
    expect(middle.text).toMatch(/\[Line 1: …(a )+needle( b)+ ?…\]$/)
    expect(middle.text.length).toBeLessThan(540)
    expect(middle.text.isWellFormed()).toBe(true)
  })

  test('of a line over half a million characters only the start is searched, and it says so', async () => {
    const { text } = await search({ file_path: 'a', pattern: 'end$' }, { a: `${'x'.repeat(500_001)}end` })
    expect(text).toContain('No matches found')
    expect(text).toContain('only the first 500000 characters')
  })

  test('a cancel stops a long search', async () => {
    const signal = AbortSignal.abort(new Error('cancelled'))
    const visit = visitTool(searchFileContent, {
      input: { file_path: 'a', pattern: 'x' },
      files: { a: 'y' },
      signal,
    })
    await expect(visit).rejects.toThrow('cancelled')
  })

  test('missing bytes are thrown as an error for the graph to report', async () => {
    const state = { origin_files: [{ name: 'gone.txt', type: '', local_path: '', mapping: null }] }
    const visit = visitTool(searchFileContent, { input: { file_path: 'gone.txt', pattern: 'x' }, state })
    await expect(visit).rejects.toMatchObject({ code: 'not_found' })
  })
})
