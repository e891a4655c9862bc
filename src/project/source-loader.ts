import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describeSlowFile, loadTimeoutMs, type PartSource } from '../graph/load.ts'
import { watchEventLoop } from '../infra/lib/watchdog.ts'

type Loader = { load: PartSource['load'] } & Disposable

/**
 * Loads files of a product as ES modules, TypeScript or not, whatever its package.json says. `mason-runtime` is the copy
 * that runs. A file that computes without end ends the process, since nothing else can: dispose of it when all are loaded.
 */
export const openSourceLoader = async (root: string): Promise<Loader> => {
  const [{ createJiti }, own] = await Promise.all([import('jiti'), import('mason-runtime')])
  const packages = join(root, 'node_modules')
  const jiti = createJiti(join(root, 'mason.config.ts'), {
    fsCache: existsSync(packages) && join(packages, '.cache', 'mason'),
    interopDefault: false,
    virtualModules: { 'mason-runtime': own },
  })
  const watch = watchEventLoop(loadTimeoutMs)
  return {
    load(path) {
      watch.say(`mason: ${path} ${describeSlowFile}`)
      return jiti.import(path)
    },
    [Symbol.dispose]: () => watch[Symbol.dispose](),
  }
}
