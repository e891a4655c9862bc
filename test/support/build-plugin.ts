import { dirname, join, resolve } from 'node:path'
import type { Plugin } from 'vitest/config'

const root = join(import.meta.dirname, '..', '..')
const source = join(root, 'src/')

/**
 * Lets tests import the build in place of `src`, natively: nothing is transformed, and the processes that it starts are built ones
 * too. The build has to be new.
 */
export const importBuild = (): Plugin => ({
  name: 'mason:import-build',
  enforce: 'pre',
  resolveId(specifier, importer) {
    if (importer === undefined || !/^\.\.?\/.*\.ts$/.test(specifier)) return null
    const path = resolve(dirname(importer), specifier)
    return path.startsWith(source)
      ? join(root, 'dist/src', `${path.slice(source.length, -'.ts'.length)}.js`)
      : null
  },
})
