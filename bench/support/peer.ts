import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Place } from './place.ts'
import type { Started } from './processes.ts'

const execute = promisify(execFile)

/** Starts `bench/peers/<name>/main.mjs` and waits for its report; installs what it needs the first time. */
export const startPeer = async (place: Place, name: string, task: unknown): Promise<Started> => {
  const folder = join(place.root, 'bench/peers', name)
  if (!existsSync(join(folder, 'node_modules'))) await install(folder)
  return place.processes.startFile(join(folder, 'main.mjs'), task, folder)
}

const install = async (folder: string): Promise<void> => {
  try {
    await execute('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder })
  } catch (error) {
    throw new Error(`this peer cannot be installed here: \`npm ci\` in ${folder} failed`, { cause: error })
  }
}
