import { mkdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** Where loaded tables are, or are to be put; `beside` is where they are written first. */
type KeptTables = { path: string; beside: string }

/**
 * Loaded tables that the next statement finds again, in a folder of this process: at most so many bytes, those that were
 * asked longest ago go first. Only a cache: whoever finds nothing loads anew.
 */
export const createTableCache = (scratch: () => Promise<string>, mostBytes: number) => {
  /** Bytes by path, those asked longest ago first. */
  const kept = new Map<string, number>()
  let count = 0

  return {
    async place(key: string): Promise<KeptTables> {
      const folder = join(await scratch(), 'tables')
      await mkdir(folder, { recursive: true, mode: 0o700 })
      count += 1
      const path = join(folder, `${key}.sqlite`)
      return { path, beside: `${path}.${count}` }
    },
    /** After a statement over them, however it went. */
    async used({ path, beside }: KeptTables): Promise<void> {
      await rm(beside, { force: true })
      const bytes = (await stat(path).catch(() => null))?.size
      kept.delete(path)
      if (bytes !== undefined) kept.set(path, bytes)
      let sum = [...kept.values()].reduce((all, one) => all + one, 0)
      for (const [old, size] of kept) {
        if (sum <= mostBytes) return
        await rm(old, { force: true })
        kept.delete(old)
        sum -= size
      }
    },
  }
}

export type TableCache = ReturnType<typeof createTableCache>
