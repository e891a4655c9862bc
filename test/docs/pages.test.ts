import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { readPage } from '../support/pages.ts'

const root = join(import.meta.dirname, '..', '..')
const pages = [
  ...['README.md', 'README.zh-CN.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  ...['examples/business-proxy/README.md'],
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]

/** Bash reads the commands without executing them; rejects with what it found. */
const parse = (commands: string) => promisify(execFile)('bash', ['-n', '-c', commands])

describe.each(pages)('the page %s', (path) => {
  test('has shell blocks that bash can parse', async () => {
    const { blocks } = await readPage(path)
    for (const { info, code } of blocks) if (/^(sh|bash)\b/.test(info)) await parse(code)
  })

  test('links to files that exist', async () => {
    const { text } = await readPage(path)
    const targets = [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(([, target = '']) => target)
    expect(targets.filter((target) => !existsSync(join(root, dirname(path), target)))).toEqual([])
  })
})

test.each(['README.md', 'README.zh-CN.md'])('%s names folders and files that exist', async (path) => {
  const { text } = await readPage(path)
  const named = [...text.matchAll(/`((?:src|migrations)\/[^`<]*)/g)].map(([, name = '']) => name)
  expect(named.length).toBeGreaterThan(10)
  expect(named.filter((name) => !existsSync(join(root, name)))).toEqual([])
})

describe('README.zh-CN.md', () => {
  const levels = (headings: readonly string[]) => headings.map((heading) => heading.replace(/ .*/, ''))
  /** Comments are translated; commands are not. */
  const commands = (code: string) => code.replaceAll(/(^|\s+)# .*$/gm, '').trim()

  test('has the headings of README.md, level by level', async () => {
    const [english, chinese] = [await readPage('README.md'), await readPage('README.zh-CN.md')]
    expect(levels(chinese.headings)).toEqual(levels(english.headings))
  })

  test('has the commands of README.md, block by block', async () => {
    const [english, chinese] = [await readPage('README.md'), await readPage('README.zh-CN.md')]
    const of = ({ blocks }: typeof english) => blocks.map(({ info, code }) => [info, commands(code)])
    expect(of(chinese)).toEqual(of(english))
  })
})
