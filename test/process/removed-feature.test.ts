// tier: all

import { execFile } from 'node:child_process'
import { cp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test as base, describe, expect } from 'vitest'
import type { FeatureDefinition } from '../../src/features/definitions.ts'
import { openFolder } from '../support/file-samples.ts'
import { closing } from '../support/integration-test.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const features = (await readdir(join(root, 'src/features'), { withFileTypes: true }))
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)

/** The features that need this one or name handles of it, and those of these: they are removed with it. */
const listUsers = async (id: string): Promise<string[]> => {
  const users = new Set([id])
  for (const one of users)
    for (const other of features) {
      const files = await readdir(join(root, 'src/features', other), { recursive: true })
      const texts = files
        .filter((file) => file.endsWith('.ts'))
        .map((file) => readFile(join(root, 'src/features', other, file), 'utf8'))
      const { default: definition } = await import(join(root, 'src/features', other, 'feature.ts'))
      const { needs = [] }: FeatureDefinition = definition
      const isUser =
        needs.includes(one) || (await Promise.all(texts)).some((text) => text.includes(`../${one}/`))
      if (isUser && other !== one) users.add(other)
    }
  return [...users]
}

/** The tests of other features that use this one. */
const listTestsWith = async (id: string): Promise<string[]> => {
  const folder = join(root, 'test/features')
  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.ts'))
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')))
  const users = files.filter((_, at) => texts[at]?.includes(`/features/${id}/`))
  return [...new Set(users.map((file) => file.split('/', 1)[0] ?? file))]
}

/** What is not needed to compile, test and start. */
const left = ['.git', '.mason', 'node_modules', 'dist', 'bench', 'console']

const test = base.extend(
  'copy',
  closing(async () => {
    const folder = await openFolder()
    await cp(root, folder.path, {
      recursive: true,
      filter: (from) => !left.some((name) => from === join(root, name)),
    })
    await symlink(join(root, 'node_modules'), join(folder.path, 'node_modules'))
    return folder
  }),
)

describe('a copy of the source', () => {
  for (const id of features)
    test(`compiles, passes the unit tests of the core, starts and is well without the feature ${id}`, async ({
      copy,
    }) => {
      const execute = async (...[program, ...args]: [string, ...string[]]): Promise<string> => {
        const { MASON_TEST_TIER: _, VITEST: __, NODE_ENV: ___, ...env } = process.env
        const options = { cwd: copy.path, env: { ...env, DATA_DIR: join(copy.path, '.mason') } }
        return (await promisify(execFile)(program, args, options)).stdout
      }
      const removed = await listUsers(id)
      for (const one of removed) {
        await rm(join(copy.path, 'src/features', one), { recursive: true })
        for (const tests of [one, ...(await listTestsWith(one))])
          await rm(join(copy.path, 'test/features', tests), { recursive: true, force: true })
      }
      await execute('npx', 'tsx', 'scripts/feature-list.ts')
      // the pictures of the graph are without its tools
      await execute('npx', 'tsx', 'scripts/draw-graph.ts')
      await execute('npx', 'tsc', '--noEmit', '-p', 'tsconfig.build.json')
      await execute('npx', 'vitest', 'run', '--project', 'unit', 'test/engine', 'test/features', 'test/graph')
      const listed = await execute('npx', 'tsx', 'src/cli.ts', 'features', '--json')
      expect(
        listed
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line).id),
      ).toEqual(features.filter((one) => !removed.includes(one)).sort())
      const asked = execute('npx', 'tsx', 'src/cli.ts', 'run', 'What is 12.5% of 480?')
      // without a key, the model is a feature too
      if (id === 'offline-model')
        await expect(asked).rejects.toMatchObject({
          code: 1,
          stdout: expect.stringMatching(/no model is left to answer .*: there is none/),
        })
      else expect(await asked).toContain(id === 'calculate' ? 'the tool calculate is not offered' : '60')
      expect(await execute('npx', 'tsx', 'src/cli.ts', 'doctor')).toContain('all is well')
    })
})
