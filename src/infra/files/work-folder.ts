import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** A folder that lives as long as one piece of work. */
export const openWorkFolder = async (
  parent: string,
): Promise<AsyncDisposable & { path: string; place(): string }> => {
  const path = await mkdtemp(join(parent, 'work-'))
  let count = 0
  return {
    path,
    /** A path in it that nothing else has. */
    place: () => join(path, `f${count++}`),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  }
}
