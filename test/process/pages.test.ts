import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { execute, makeFolder } from './page-commands.ts'

const root = join(import.meta.dirname, '..', '..')

test('README.md asks two questions about its file, and the offline model answers both', async () => {
  const cwd = await makeFolder()
  await cp(join(root, 'examples/data'), join(cwd, 'examples/data'), { recursive: true })
  const [answers] = await execute('README.md', { cwd })
  expect(answers).toMatch(/ Answered\n\n[^\n]*\b8\b[\s\S]* Answered\n\n[^\n]*\b2\b/)
})
