import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { readPage } from '../support/pages.ts'
import { commandLine } from '../support/script-flags.ts'

/** The command line of this repository, quoted for a shell. */
export const mason = (): string => [process.execPath, ...commandLine()].map((word) => `'${word}'`).join(' ')
/** `npx mason` is the command line of this repository; any other `npx` is the real one. */
const npx = (): string => `#!/usr/bin/env bash
if [ "$1" = mason ]; then shift; exec ${mason()} "$@"; fi
PATH=\${PATH#*:} exec npx "$@"
`

/** An empty folder for a page, until the test is over. Beside it is `bin`, with the `npx` that its commands find first. */
export const makeFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'mason-pages-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const name of ['bin', 'page']) await mkdir(join(folder, name))
  await writeFile(join(folder, 'bin', 'npx'), npx(), { mode: 0o755 })
  return join(folder, 'page')
}

/**
 * Creates the page's files (`ts` blocks that begin with `// <path>`) and runs its blocks marked `sh run`, as they are there, in a
 * folder of `makeFolder`; gives what they print, block by block.
 */
export const execute = async (
  path: string,
  {
    cwd,
    env = {},
    only = () => true,
  }: { cwd: string; env?: Record<string, string>; only?(code: string): boolean },
): Promise<string[]> => {
  const { blocks } = await readPage(path)
  for (const { info, code } of blocks) {
    const [, file] = /^\/\/ (\S+)\n/.exec(code) ?? []
    if (info !== 'ts' || !file) continue
    await mkdir(dirname(join(cwd, file)), { recursive: true })
    await writeFile(join(cwd, file), code)
  }
  const commands = blocks.filter(({ info, code }) => info === 'sh run' && only(code)).map(({ code }) => code)
  expect(commands).not.toEqual([])
  const script = [
    'set -euo pipefail',
    // what a failed page started in the background ends with it
    'trap \'jobs=$(jobs -p); [ -z "$jobs" ] || kill -KILL $jobs\' EXIT',
    ...commands.flatMap((block) => [block, "printf '\\036'"]),
  ].join('\n')
  const { PATH = '', HOME = '' } = process.env
  const child = spawn('bash', ['-c', script], {
    cwd,
    env: { PATH: `${join(dirname(cwd), 'bin')}:${PATH}`, HOME, CI: 'true', LOG_LEVEL: 'warn', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const written = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      written[name] += text
    })
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject).once('close', resolve)
  })
  if (code !== 0) throw new Error(`${path} ended with ${code}:\n${written.stdout}\n${written.stderr}`)
  return written.stdout.split('\u001e').map((text) => text.trim())
}
