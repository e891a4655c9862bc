import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll } from 'vitest'

/** A project outside that has installed the package with its dependencies, and nothing else. */

/** The repository. */
export const root = join(import.meta.dirname, '..', '..')
/** The folder of the project. */
export let project: string

const linkPackage = async (name: string): Promise<void> => {
  const path = join(project, 'node_modules', name)
  await mkdir(dirname(path), { recursive: true })
  await symlink(join(root, 'node_modules', name), path)
}

/** What `npm pack` would put into the package. */
const listPackedFiles = async (): Promise<string[]> => {
  const command = ['pack', '--dry-run', '--json', '--ignore-scripts']
  const { stdout } = await promisify(execFile)('npm', command, { cwd: root, maxBuffer: 2 ** 26 })
  const [packed] = JSON.parse(stdout) as { files: { path: string }[] }[]
  return packed?.files.map(({ path }) => path) ?? []
}

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'mason-package-'))
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  await Promise.all([
    writeFile(join(project, 'package.json'), '{"type": "module"}'),
    ...(await listPackedFiles()).map((path) =>
      cp(join(root, path), join(project, 'node_modules', 'mason-runtime', path)),
    ),
    ...Object.keys(manifest.dependencies).map(linkPackage),
  ])
})
afterAll(() => rm(project, { recursive: true, force: true }))

/** Runs a command in the project. */
export const run = (command: string, args: string[], env: NodeJS.ProcessEnv = {}) =>
  promisify(execFile)(command, args, { cwd: project, env: { PATH: process.env.PATH, ...env } }).then(
    ({ stdout }) => ({ code: 0, output: stdout }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
      code,
      output: stdout + stderr,
    }),
  )
