import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

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

/** Before a run of tests: lets its processes work on the build, unless a source is newer than that. */
export const preferBuild = (): void => {
  const isNew = isBuildNew()
  process.env[setting] = isNew ? '1' : '0'
  if (!isNew)
    console.log(
      'processes of the tests run the sources, which is slow; npm run build lets them run the build',
    )
}

/** Whether the build is there and no source is newer. */
export const isBuildNew = (): boolean => {
  const built = join(root, 'dist/src/cli.js')
  return existsSync(built) && newestIn(join(root, 'src')) < statSync(built).mtimeMs
}

const newestIn = (folder: string): number =>
  Math.max(
    ...readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(
      (path) => statSync(join(folder, path)).mtimeMs,
    ),
  )
