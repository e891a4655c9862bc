import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describeSlowFile, loadTimeoutMs, type PartSource } from '../graph/load.ts'
import { watchEventLoop } from '../infra/lib/watchdog.ts'

type Loader = { load: PartSource['load'] } & Disposable

/**
 * Loads files of a product as ES modules, TypeScript or not, whatever its package.json says. `mason-runtime`, with
 * `mason-runtime/features`, is the copy that runs, and so is `zod` for files that have none of their own. A file that computes without end ends the process, since nothing else can: dispose of it when all are loaded.
 */
export const openSourceLoader = async (root: string): Promise<Loader> => {
  const [{ createJiti }, own, ofFeatures, zod] = await Promise.all([
    import('jiti'),
    import('mason-runtime'),
    import('mason-runtime/features'),
    import('zod'),
  ])
  const packages = join(root, 'node_modules')
  const create = (virtualModules: Record<string, unknown>) =>
    createJiti(join(root, 'mason.config.ts'), {
      fsCache: existsSync(packages) && join(packages, '.cache', 'mason'),
      interopDefault: false,
      virtualModules: { 'mason-runtime': own, 'mason-runtime/features': ofFeatures, ...virtualModules },
    })
  const [jiti, jitiWithZod] = [create({}), create({ zod })]
  const watch = watchEventLoop(loadTimeoutMs)
  // a file that waits for nothing would end the process without a word
  const awake = setInterval(() => {}, loadTimeoutMs)
  let loading = root
  const blame = (code: number): void => {
    process.stderr.write(
      `mason: ${loading} ended the process while it was loaded; remove process.exit from it\n`,
    )
    process.exitCode = code || 1
  }
  process.on('exit', blame)
  return {
    load(path) {
      loading = path
      watch.say(`mason: ${path} ${describeSlowFile}`)
      return (hasZod(path) ? jiti : jitiWithZod).import(path)
    },
    [Symbol.dispose]() {
      clearInterval(awake)
      process.off('exit', blame)
      watch[Symbol.dispose]()
    },
  }
}

const hasZod = (path: string): boolean => {
  try {
    return createRequire(path).resolve('zod') !== ''
  } catch {
    return false
  }
}
