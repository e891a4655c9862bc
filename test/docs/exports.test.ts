import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { isBuildNew } from '../support/script-flags.ts'

const root = join(import.meta.dirname, '..', '..')

const { exports: entries } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, { default: string; types: string }>
}
/** A file of each entry of the package, by what programs import. */
const modulesBy = (fileOf: (entry: { default: string; types: string }) => string) =>
  Object.fromEntries(
    Object.entries(entries).map(([path, entry]) => [
      join('mason-runtime', path).replace(/\/$/, ''),
      join(root, fileOf(entry)),
    ]),
  )
const sourceOf = modulesBy((entry) => entry.default.replace('dist/', '').replace(/js$/, 'ts'))

/** What the compiler reads for each: the types of the build, or of all sources, which takes ten times as long. */
const typesOf = isBuildNew() ? modulesBy(({ types }) => types) : sourceOf

/** Exported names of all entries, each with the doc comment of its declaration (empty without one). */
const readExports = async (): Promise<{ name: string; comment: string }[]> => {
  const found = Object.values(sourceOf).map(async (file) => {
    const index = await readFile(file, 'utf8')
    const statements = index.matchAll(/^export (?:type )?\{([^}]*)\} from '([^']+)'/gm)
    return Promise.all(
      [...statements].map(async ([, names = '', path = '']) => {
        const source = await readFile(join(dirname(file), path), 'utf8')
        return names
          .split(',')
          .map((text) => text.replace(/\btype\b/, '').trim())
          .filter((name) => name !== '')
          .map((name) => {
            const at = source.search(
              new RegExp(`^export (?:const|type|class|interface|async function) ${name}\\b`, 'm'),
            )
            const before = source.slice(0, Math.max(at, 0))
            return { name, comment: before.endsWith('*/\n') ? before.slice(before.lastIndexOf('/**')) : '' }
          })
      }),
    )
  })
  return (await Promise.all(found)).flat(2)
}

const exampleIn = (comment: string): string =>
  /@example\n \* ```ts\n([\s\S]*?) \* ```/.exec(comment)?.[1]?.replaceAll(/^ \* ?/gm, '') ?? ''

describe('every export of the package', () => {
  test('has a doc comment with an example', async () => {
    const exports = await readExports()
    expect(exports.length).toBeGreaterThan(10)
    expect(exports.filter(({ comment }) => !exampleIn(comment)).map(({ name }) => name)).toEqual([])
  })

  test('has an example that the compiler accepts', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'mason-examples-'))
    try {
      await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
      await writeFile(join(folder, 'package.json'), '{"type": "module"}')
      const options = {
        noEmit: true,
        rootDir: '/',
        paths: Object.fromEntries(Object.entries(typesOf).map(([name, file]) => [name, [file]])),
      }
      const unused = { noUnusedLocals: false, noUnusedParameters: false }
      const config = {
        extends: join(root, 'tsconfig.json'),
        compilerOptions: { ...options, ...unused },
        include: ['*.ts'],
      }
      await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
      for (const { name, comment } of await readExports())
        await writeFile(join(folder, `${name}.ts`), exampleIn(comment))
      const tsc = join(root, 'node_modules', '.bin', 'tsc')
      const { stdout } = await promisify(execFile)(tsc, ['-p', folder]).catch(
        (error: { stdout: string }) => error,
      )
      expect(stdout).toBe('')
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }, 300_000)
})
