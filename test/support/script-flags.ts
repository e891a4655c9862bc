import { existsSync, readdirSync, statSync } from 'node:fs'
import { register } from 'node:module'
import { join } from 'node:path'
import { isGate } from './marks.ts'

const root = join(import.meta.dirname, '..', '..')

/** Set where this run has found the build to be that of the sources as they are. */
const setting = 'MASON_TEST_ON_BUILD'

/** Flags for node in front of a TypeScript file of the tests: on the build where that is known to be new, else by tsx. */
export const scriptFlags = (): string[] =>
  onBuild()
    ? ['--import', new URL('./on-build.mjs', import.meta.url).href]
    : ['--import', import.meta.resolve('tsx')]

/** The command line and what stands before it: `bin`, or the built one where that is known to be new. */
export const commandLine = (bin?: string): string[] =>
  bin !== undefined
    ? [bin]
    : onBuild()
      ? [join(root, 'dist/src/cli.js')]
      : [...scriptFlags(), join(root, 'src/cli.ts')]

const onBuild = (): boolean => process.env[setting] === '1'

/** Before a run of tests: lets its processes work on the build, unless a source is newer than that. Says whether it does. */
export const preferBuild = (): boolean => {
  const isNew = isBuildNew()
  process.env[setting] = isNew ? '1' : '0'
  if (!isNew)
    console.log(
      'processes of the tests run the sources, which is slow; npm run build lets them run the build',
    )
  return isNew
}

let isHooked = false
/** Lets this process, whose `src` is the build, load TypeScript files that import `src`, such as tools of the tests. */
export const hookSources = (): void => {
  if (!isGate || !onBuild() || isHooked) return
  isHooked = true
  register('./on-build.mjs', import.meta.url)
}

/** What `npm run build` reads. */
const inputs = [
  ...['src', 'workers', 'migrations', 'scripts', 'package.json', 'package-lock.json'],
  ...['tsconfig.json', 'tsconfig.build.json'],
]

/** Whether the last build ended, and nothing it read was changed, added or removed since it began. */
export const isBuildNew = (): boolean => {
  const built = join(root, 'dist/built')
  return existsSync(built) && inputs.every((path) => newestIn(join(root, path)) < statSync(built).mtimeMs)
}

/** Of a file, or of a folder and all below it: a folder changes when an entry of it goes. */
const newestIn = (path: string): number => {
  const stat = statSync(path)
  if (!stat.isDirectory()) return stat.mtimeMs
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => newestIn(join(path, name))))
}
