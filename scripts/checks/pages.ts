import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { readPage } from '../../test/support/pages.ts'
import type { Check } from '../check-repository.ts'
import { compareRoleTable } from '../role-table.ts'
import { root } from '../source-tree.ts'
import { decisions } from './decisions.ts'

const readmes = ['README.md', 'README.zh-CN.md']
const paths = [
  ...[...readmes, 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  'examples/business-proxy/README.md',
  ...readdirSync(join(root, 'docs'), { encoding: 'utf8', recursive: true })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]
type Page = Awaited<ReturnType<typeof readPage>>
const pages = await Promise.all(paths.map(async (path) => [path, await readPage(path)] as const))
const listOf = (find: (page: Page, path: string) => string[]): string[] =>
  pages.flatMap(([path, page]) => find(page, path).map((line) => `${path}: ${line}`))

/** Bash reads the commands without executing them. */
const findShellError = (commands: string): string[] => {
  const { status, stderr } = spawnSync('bash', ['-n', '-c', commands], { encoding: 'utf8' })
  return status === 0 ? [] : [stderr.trim()]
}

/** The first line in which two lists differ. */
const findDifference = (one: readonly string[], other: readonly string[]): string[] => {
  const at = Array.from({ length: Math.max(one.length, other.length) }, (_, n) => n).find(
    (n) => one[n] !== other[n],
  )
  return at === undefined
    ? []
    : [`${other[at] ?? 'nothing'} stands where README.md has ${one[at] ?? 'nothing'}`]
}
const [english, chinese] = readmes.map((path) => pages.find(([one]) => one === path)?.[1]) as [Page, Page]
const toLevels = ({ headings }: Page): string[] => headings.map((heading) => heading.replace(/ .*/, ''))
/** Comments are translated; commands are not. */
const toCommands = ({ blocks }: Page): string[] =>
  blocks.map(({ info, code }) => `${info}: ${code.replaceAll(/(^|\s+)# .*$/gm, '').trim()}`)

/** What the pages of the documentation keep to. */
export const documentation: readonly Check[] = [
  [
    'bash cannot read the commands of a page',
    () =>
      listOf(({ blocks }) =>
        blocks.flatMap(({ info, code }) => (/^(sh|bash)\b/.test(info) ? findShellError(code) : [])),
      ),
  ],
  [
    'a link leads to no file',
    () =>
      listOf(({ text }, path) =>
        [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)]
          .map(([, target = '']) => target)
          .filter((target) => !existsSync(join(root, dirname(path), target))),
      ),
  ],
  [
    'a README names no file or folder that exists',
    () =>
      listOf(({ text }, path) =>
        [...(readmes.includes(path) ? text : '').matchAll(/`((?:src|migrations)\/[^`<]*)/g)]
          .map(([, name = '']) => name)
          .filter((name) => !existsSync(join(root, name))),
      ),
  ],
  [
    'docs/roles.md is not what the routes say',
    async () => {
      const { page, expected } = await compareRoleTable()
      return page === expected ? [] : ['run `npm run roles`']
    },
  ],
  ['README.zh-CN.md has other headings', () => findDifference(toLevels(english), toLevels(chinese))],
  ['README.zh-CN.md has other commands', () => findDifference(toCommands(english), toCommands(chinese))],
  ...decisions,
]
