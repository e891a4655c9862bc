import { execFile } from 'node:child_process'
import { chmod, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { openFolder } from '../support/file-samples.ts'

const root = join(import.meta.dirname, '..', '..')
const read = (path: string): Promise<string> => readFile(join(root, path), 'utf8')

type Entry = { version?: string; integrity?: string; license?: string; dev?: boolean; link?: boolean }
const readEntries = async (text: Promise<string>): Promise<[name: string, Entry][]> => {
  const { packages } = JSON.parse(await text) as { packages: Record<string, Entry> }
  return Object.entries(packages).flatMap(([path, entry]) =>
    // this package, its workspaces and the links to them
    !path.includes('node_modules/') || entry.link
      ? []
      : [[path.split('node_modules/').at(-1) ?? path, entry] as const],
  ) as [string, Entry][]
}

/** Packages of other platforms, which no registry in use so far has served; `npm run lock -- --hashes` fills in what one serves. */
const withoutHash = [
  ...['android-arm64', 'android-x64', 'darwin-arm64', 'darwin-x64'].map((name) => `@biomejs/cli-${name}`),
  ...['linux-arm64-musl', 'linux-x64-musl', 'win32-arm64', 'win32-x64'].map((name) => `@biomejs/cli-${name}`),
  ...['darwin-arm64', 'darwin-x64', 'linux-arm', 'win32-x64'].map(
    (name) => `@msgpackr-extract/msgpackr-extract-${name}`,
  ),
  ...['android-arm-eabi', 'android-arm64', 'darwin-arm64', 'darwin-x64', 'freebsd-x64'].map(
    (name) => `@oxc-parser/binding-${name}`,
  ),
  ...['linux-arm-gnueabihf', 'linux-arm-musleabihf', 'linux-ppc64-gnu', 'linux-riscv64-gnu'].map(
    (name) => `@oxc-parser/binding-${name}`,
  ),
  ...['linux-riscv64-musl', 'linux-s390x-gnu', 'openharmony-arm64'].map(
    (name) => `@oxc-parser/binding-${name}`,
  ),
  ...['win32-arm64-msvc', 'win32-ia32-msvc', 'win32-x64-msvc'].map((name) => `@oxc-parser/binding-${name}`),
]

/** Of the packages that Mason needs to run. A new one is a decision, not an accident. */
const licenses = [
  ...['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT', 'MPL-2.0'],
  ...['(MIT AND Zlib)', '(MIT OR GPL-3.0-or-later)'],
]
/** Its entry has another word for it, or none: by the text of its license. */
const licensesByText: Record<string, string> = {
  duck: 'BSD-2-Clause',
  ...Object.fromEntries(
    withoutHash.filter((name) => name.startsWith('@msgpackr-extract/')).map((name) => [name, 'MIT']),
  ),
}

describe('the lock file', () => {
  test('has an integrity hash for every package but those listed here', async () => {
    const entries = await readEntries(read('package-lock.json'))
    const missing = entries.flatMap(([name, { integrity }]) =>
      integrity?.startsWith('sha512-') ? [] : [name],
    )
    expect(missing.sort()).toEqual([...withoutHash].sort())
  })

  test('names no address of a registry, which is a setting of the machine', async () => {
    expect(await read('package-lock.json')).not.toMatch(/"resolved": "(?!console")/)
  })

  test('has packages under known licenses only', async () => {
    const entries = await readEntries(read('package-lock.json'))
    const unknown = entries.flatMap(([name, { license, dev }]) => {
      const found = licensesByText[name] ?? license ?? 'none'
      return dev || licenses.includes(found) ? [] : [`${name}: ${found}`]
    })
    expect(unknown).toEqual([])
  })
})

/** A folder first in the path, with one command that runs this script. */
const withCommand = async (folder: string, name: string, script: string): Promise<NodeJS.ProcessEnv> => {
  const path = join(folder, 'bin', name)
  await mkdir(dirname(path))
  await writeFile(path, `#!/bin/sh\n${script}\n`)
  await chmod(path, 0o755)
  return { ...process.env, PATH: `${dirname(path)}${delimiter}${process.env.PATH}` }
}
const run = (script: string, args: string[], env: NodeJS.ProcessEnv) =>
  promisify(execFile)(process.execPath, [join(root, 'scripts', script), ...args], { env })

test('npm run lock -- --hashes writes the hashes that the registry serves, and no other', async () => {
  await using folder = await openFolder()
  const lock = join(folder.path, 'lock.json')
  const packages = {
    'node_modules/served': { version: '1.0.0' },
    'node_modules/a/node_modules/odd': { version: '2.0.0' },
    'node_modules/absent': { version: '3.0.0' },
    'node_modules/there': { version: '4.0.0', integrity: 'sha512-kept' },
  }
  await writeFile(lock, JSON.stringify({ packages }))
  const hash = `sha512-${'a'.repeat(86)}==`
  const env = await withCommand(
    folder.path,
    'npm',
    `case "$2" in served@1.0.0) echo ${hash};; odd@2.0.0) echo "<html>a proxy</html>";; *) exit 1;; esac`,
  )
  await run('fix-lock.mjs', [lock, '--hashes'], env)
  const entries = Object.fromEntries(await readEntries(readFile(lock, 'utf8')))
  expect(entries).toEqual({
    served: { version: '1.0.0', integrity: hash },
    odd: { version: '2.0.0' },
    absent: { version: '3.0.0' },
    there: { version: '4.0.0', integrity: 'sha512-kept' },
  })
})

describe('the images of the Dockerfile and the compose file', () => {
  const files = ['Dockerfile', 'compose.yaml']

  test('are exact versions, with Node 24', async () => {
    const text = (await Promise.all(files.map(read))).join('\n')
    const images = [...text.matchAll(/^(?:\s*image: |FROM )(\S+)/gm)].map(([, name = '']) => name)
    const exact =
      /^(node:24\.\d+\.\d+|redis:\d+\.\d+\.\d+|pgvector\/pgvector:\d+\.\d+\.\d+-pg17)-bookworm(-slim)?(@sha256:[0-9a-f]{64})?$/
    expect(images.filter((name) => name !== 'mason' && !exact.test(name))).toEqual([])
    expect(images).toHaveLength(5)
  })

  test('get the digests that docker fetches, and stay as they are where one cannot be had', async () => {
    await using folder = await openFolder()
    for (const file of files) await copyFile(join(root, file), join(folder.path, file))
    const readAll = () => Promise.all(files.map((file) => readFile(join(folder.path, file), 'utf8')))
    const before = await readAll()
    const digest = `sha256:${'0'.repeat(64)}`
    const answers = join(folder.path, 'answers')
    const env = await withCommand(
      folder.path,
      'docker',
      `case "$4" in redis*) test -e ${answers} || exit 1;; esac; echo ${digest}`,
    )
    await expect(run('pin-images.mjs', [folder.path], env)).rejects.toThrow()
    expect(await readAll()).toEqual(before)
    await writeFile(answers, '')
    // pinned again, a digest is replaced
    for (let round = 0; round < 2; round += 1) await run('pin-images.mjs', [folder.path], env)
    const pinned = (await readAll()).join('\n').match(new RegExp(`@${digest}(?=\\s)`, 'g'))
    expect(pinned).toHaveLength(4)
  })
})
