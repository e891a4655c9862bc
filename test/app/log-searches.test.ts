// backends: either

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { openFolder } from '../support/file-samples.ts'
import { closing, runtimeTest } from '../support/integration-test.ts'
import { calling, say } from '../support/script.ts'

const test = runtimeTest
  .extend(
    'folder',
    { scope: 'file' },
    closing(() => openFolder()),
  )
  .extend('runtimeOptions', { scope: 'file' }, ({ folder }) => ({ config: { filesRoot: folder.path } }))

/** A step of RE2 takes as long as its size times the length of the line. */
const costly = '([a-z]{1,100}){1,10}[0-9]'

test('a pattern that takes too long is refused with what to do, and the worker goes on meanwhile', async ({
  folder,
  model,
  runtime,
}) => {
  await writeFile(join(folder.path, 'line.txt'), `${'a'.repeat(490_000)}1`)
  await writeFile(join(folder.path, 'lines.txt'), '\n'.repeat(5_000_000))
  say(model, {
    planner: [
      calling(
        ['search_file_content', { file_path: 'line.txt', pattern: costly }],
        ['search_file_content', { file_path: 'line.txt', pattern: 'a{3}1$' }],
        ['read_file', { file_path: 'lines.txt', start_line: 4_000_000 }],
        ['search_file_content', { file_path: 'lines.txt', pattern: '(' }],
      ),
      { text: 'Done.' },
    ],
  })
  const run = await runtime.complete({
    prompt: 'Search',
    files: ['line.txt', 'lines.txt'].map((name) => ({
      name,
      type: 'text/plain',
      mapping: { provider: 'local', path: name },
    })),
  })
  expect(run).toMatchObject({ status: 'completed', answer: 'Done.' })
  const said = (await runtime.stateOf(run.id)).action_history.flat().map(({ result }) => String(result.text))
  // the second on a machine that gives it less than a sixth of a processor, as it may do to both searches
  const refused =
    /^Error: (The pattern takes longer than 1\.5 s on this text; make it simpler|This machine has no time)/
  const refusals = said.filter((text) => refused.test(text)).length
  const matches = said.filter((text) => /^Matches in 'line.txt': \[Line 1: …a+1\]/.test(text)).length
  expect([refusals > 0, refusals + matches]).toEqual([true, 2])
  expect(said).toContainEqual(expect.stringContaining("'lines.txt', lines 4000000-4001999 of 5000000:"))
  expect(said).toContainEqual(expect.stringContaining("Invalid pattern '(': missing closing )"))
})
