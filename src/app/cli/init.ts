import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { createFolder } from '../../infra/lib/data-folder.ts'
import { readMasonVersion, toPackagePath } from '../../infra/lib/package-path.ts'
import { exitCodes, UsageError } from './errors.ts'

/** Files whose names npm would change, or leave out of a package. */
const renamed: Record<string, string> = { gitignore: '.gitignore', 'env.example': '.env.example' }

/**
 * `mason init [dir]`: writes a small project that runs at once. A package.json that is there stays; where another file of the
 * project is, nothing is written. Returns the exit code.
 */
export const initProject = async (folder: string): Promise<number> => {
  const root = resolve(folder)
  const source = toPackagePath('templates', 'project')
  const entries = await readdir(source, { recursive: true, withFileTypes: true })
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(source, join(entry.parentPath, entry.name)))
    .map((path) => ({ path, to: join(root, renamed[path] ?? path) }))
  const present = files.filter(({ path, to }) => path !== 'package.json' && existsSync(to))
  if (present.length > 0)
    throw new UsageError(
      `${root} already has ${present.map(({ to }) => relative(root, to)).join(', ')}; nothing was written`,
      'name a new folder: mason init my-project',
    )
  const hasManifest = existsSync(join(root, 'package.json'))
  const installed = await readInstalledSpec()
  const words = { __NAME__: toPackageName(root), __MASON__: toSpecIn(root, installed) }
  for (const { path, to } of files) {
    if (existsSync(to)) continue
    let text = await readFile(join(source, path), 'utf8')
    for (const [word, value] of Object.entries(words)) text = text.replaceAll(word, value)
    await createFolder(dirname(to)).catch(({ message }: Error) => {
      throw new UsageError(
        `${root} cannot be created: ${message}`,
        'name a folder that this user may write to',
      )
    })
    await writeFile(to, text, { flag: 'wx' })
    process.stdout.write(`wrote ${relative(process.cwd(), to)}\n`)
  }
  const shown = relative(process.cwd(), root)
  // a package.json that was there has its own scripts and dependencies
  const missing = installed === undefined ? 'mason-runtime zod' : 'zod'
  const steps = hasManifest ? [`npm install ${missing}`, 'node --test'] : ['npm install', 'npm test']
  const lines = [...(shown === '' ? [] : [`cd ${shown}`]), ...steps, 'npx mason-runtime dev']
  process.stdout.write(`\n${lines.join('\n')}\n`)
  return exitCodes.done
}

/** What the project in the current folder, if there is one, asks npm for. */
const readInstalledSpec = async (): Promise<string | undefined> => {
  const text = await readFile('package.json', 'utf8').catch(() => '{}')
  return (JSON.parse(text) as { dependencies?: Record<string, string> }).dependencies?.['mason-runtime']
}

/** The same for a project in `root`: a tarball, folder or address that is not the registry's, or else this version. */
const toSpecIn = (root: string, installed = ''): string => {
  const path = /^file:(.*)$/.exec(installed)?.[1]
  if (path !== undefined) return `file:${relative(root, resolve(path))}`
  return installed.includes(':') ? installed : `^${readMasonVersion()}`
}

const toPackageName = (root: string): string =>
  basename(root)
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]/g, '-')
    .replace(/^-+/, '') || 'my-project'
