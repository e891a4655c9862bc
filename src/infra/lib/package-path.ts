import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const findPackageRoot = (): string => {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder)
  return folder
}

/** A path inside this package, whether it runs from its sources or from dist/. */
export const toPackagePath = (...parts: string[]): string => join(findPackageRoot(), ...parts)

/** The version of this package. */
export const readMasonVersion = (): string => readManifest().version

/** The packages that are installed only where they are used, with the versions that fit. */
export const listOptionalPackages = (): string[] =>
  Object.entries(readManifest().peerDependencies).map(([name, version]) => `'${name}@${version}'`)

const readManifest = () =>
  JSON.parse(readFileSync(toPackagePath('package.json'), 'utf8')) as {
    version: string
    peerDependencies: Record<string, string>
  }
