import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Case, Variant } from '../case.ts'
import { timeStart } from '../support/command.ts'

/** What a command works in, and leaves behind. */
const inFolder = async <T>(work: (folder: string) => Promise<T>): Promise<T> => {
  const folder = await mkdtemp(join(tmpdir(), 'mason-bench-start-'))
  try {
    return await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** From starting the process until it takes runs, on servers that were migrated before. */
const worker: Variant = ({ env }) =>
  inFolder(async (cwd) => {
    const command = { script: 'workers/run.worker.js', env, cwd }
    const { seconds, cpu, mb } = await timeStart(command, /takes \d+ runs/)
    return { seconds, 'CPU seconds': cpu, MB: mb }
  })

/** `mason serve` without servers: in an empty folder, and again in the same. */
const embedded: Variant = () =>
  inFolder(async (cwd) => {
    const serve = { script: 'src/cli.js', args: ['serve', '--port', '0'], env: { DATA_DIR: cwd }, cwd }
    const listens = /listens on/
    const first = await timeStart(serve, listens)
    const again = await timeStart(serve, listens)
    return {
      'seconds first': first.seconds,
      'CPU seconds first': first.cpu,
      'seconds reopened': again.seconds,
      'CPU seconds reopened': again.cpu,
      MB: again.mb,
    }
  })

const start: Case = {
  about: 'how soon a worker process takes runs, and an embedded server requests: first start and reopening',
  ours: { worker, embedded },
}

export default start
