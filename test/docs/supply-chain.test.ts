import { execFile } from 'node:child_process'
import { chmod, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { openFolder } from '../support/file-samples.ts'

const root = join(import.meta.dirname, '..', '..')

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
  expect(JSON.parse(await readFile(lock, 'utf8'))).toEqual({
    packages: { ...packages, 'node_modules/served': { version: '1.0.0', integrity: hash } },
  })
})

describe('the images of the Dockerfile and the compose files', () => {
  const files = ['Dockerfile', 'compose.yaml', 'templates/project/compose.yaml']

  test('get the digests that docker fetches, and stay as they are where one cannot be had', async () => {
    await using folder = await openFolder()
    await mkdir(join(folder.path, 'templates/project'), { recursive: true })
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
    expect(pinned).toHaveLength(7)
  })
})
