import { execFile } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const execute = promisify(execFile)

export const root = fileURLToPath(new URL('../../', import.meta.url))

/** A compiled tree in a folder of its own: what is edited while it runs changes nothing. */
export type Build = AsyncDisposable & { folder: string; script(path: string): string }

const own = new Set(['.git', 'node_modules', 'dist', 'bench', 'chaos', 'test', '.mason'])

/** Compiles the product of a git ref, or of the working tree as it stands, together with this bench. */
export const build = async (ref: string | null): Promise<Build> => {
  const folder = await mkdtemp(join(tmpdir(), 'mason-bench-'))
  try {
    await (ref === null ? copyTree(folder) : checkOut(ref, folder))
    await copyBench(folder)
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
    await compile(folder)
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
  return {
    folder,
    script: (path) => join(folder, 'dist', path.replace(/\.ts$/, '.js')),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

const copyTree = async (folder: string): Promise<void> => {
  for (const name of await readdir(root))
    if (!own.has(name)) await cp(join(root, name), join(folder, name), { recursive: true })
}

const checkOut = async (ref: string, folder: string): Promise<void> => {
  const archive = join(folder, 'tree.tar')
  await execute('git', ['archive', '--output', archive, ref], { cwd: root })
  await execute('tar', ['-xf', archive, '-C', folder])
  for (const name of ['bench', 'chaos', 'test', 'tree.tar'])
    await rm(join(folder, name), { recursive: true, force: true })
}

const needed = [
  'actions.ts',
  'drop-keys.ts',
  'file-samples.ts',
  'mandate-parties.ts',
  'no-op-models.ts',
  'payment-provider.ts',
  'purchase-processes.ts',
  'purchases.ts',
  'registry-view.ts',
  'served-logins.ts',
  'setup-served.ts',
]

/** Both sides of a comparison are measured by the same bench: that of the working tree. */
const copyBench = async (folder: string): Promise<void> => {
  const isOurs = (path: string): boolean => !path.startsWith(join(root, 'bench', 'peers'))
  await cp(join(root, 'bench'), join(folder, 'bench'), { recursive: true, filter: isOurs })
  for (const file of needed) await cp(join(root, 'test/support', file), join(folder, 'test/support', file))
}

/** The product's own build, with the bench beside it, and without the check of types, which is `npm run check`'s. */
const compile = async (folder: string): Promise<void> => {
  const { scripts } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
    scripts: { build: string }
  }
  const plain = 'tsc -p tsconfig.build.json'
  if (!scripts.build.includes(plain))
    throw new Error(`npm run build is not "${plain} …" any more: update bench/support/build.ts`)
  const steps = scripts.build.replace(plain, 'tsc -p bench/tsconfig.json --noCheck')
  const PATH = `${join(root, 'node_modules/.bin')}${delimiter}${process.env.PATH}`
  await execute('sh', ['-c', steps], { cwd: folder, env: { ...process.env, PATH } })
}
