import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '..', '..')

/** Exported names of src/index.ts, each with the doc comment of its declaration (empty without one). */
const readExports = async (): Promise<{ name: string; comment: string }[]> => {
  const index = await readFile(join(root, 'src/index.ts'), 'utf8')
  const found = [...index.matchAll(/^export (?:type )?\{([^}]*)\} from '([^']+)'/gm)].map(
    async ([, names = '', path = '']) => {
      const source = await readFile(join(root, 'src', path), 'utf8')
      return names.split(',').map((text) => {
        const name = text.replace(/\btype\b/, '').trim()
        const at = source.search(new RegExp(`^export (?:const|type) ${name}\\b`, 'm'))
        const before = source.slice(0, Math.max(at, 0))
        return { name, comment: before.endsWith('*/\n') ? before.slice(before.lastIndexOf('/**')) : '' }
      })
    },
  )
  return (await Promise.all(found)).flat()
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
      const options = { noEmit: true, rootDir: '/', paths: { 'mason-runtime': [join(root, 'src/index.ts')] } }
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
