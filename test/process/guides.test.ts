// tier: all
import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { listRepositoryFiles, readPage } from '../support/pages.ts'
import { project, root, run } from './installed-package.ts'
import { execute, makeFolder } from './page-commands.ts'

/** Installed packages take minutes to copy on a busy machine. */
const isSource = (path: string): boolean => basename(path) !== 'node_modules'

/** A copy of the repository that a page can change, with what is installed and built as it is after `npm ci`. */
const copyRepository = async (): Promise<string> => {
  const cwd = await makeFolder()
  const shared = ['node_modules', 'dist']
  const left = new Set(['.git', '.mason', ...shared])
  for (const name of await readdir(root))
    if (!left.has(name)) await cp(join(root, name), join(cwd, name), { recursive: true, filter: isSource })
  for (const name of shared) await symlink(join(root, name), join(cwd, name))
  return cwd
}

test('docs/write-a-tool.md creates a tool that its test accepts', async () => {
  const printed = await execute('docs/write-a-tool.md', { cwd: await copyRepository() })
  expect(printed[0]).toMatch(/1 passed[\s\S]*\| `count_words` \| call tool \|/)
})

test('docs/write-a-node.md creates a node that a run visits', async () => {
  const printed = await execute('docs/write-a-node.md', { cwd: await copyRepository() })
  expect(printed[0]).toMatch(/reflection -\.-> tally;[\s\S]*tally .*\d+ actions so far, 0 with an error/)
})

test('the worked example of an own repository compiles with its own service, and its test passes', async () => {
  const files = listRepositoryFiles(await readPage('docs/write-a-tool.md'))
  const shop = join(project, 'shop')
  for (const { name, code } of files) {
    await mkdir(dirname(join(shop, name)), { recursive: true })
    await writeFile(join(shop, name), code)
  }
  const compilerOptions = {
    ...{ strict: true, module: 'nodenext', target: 'es2022', noEmit: true, types: [] },
    ...{ lib: ['es2022', 'dom'], allowImportingTsExtensions: true },
  }
  const sources = files.map(({ name }) => name).filter((name) => name.endsWith('.ts'))
  expect(sources).toHaveLength(4)
  await writeFile(join(shop, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: sources }))
  expect(await run(join(root, 'node_modules', '.bin', 'tsc'), ['-p', 'shop'])).toEqual({
    code: 0,
    output: '',
  })
  await promisify(execFile)(process.execPath, ['--test'], { cwd: shop })
})
