import { mkdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** Where loaded tables are, or are to be put; `beside` is where they are written first. */
type KeptTables = { path: string; beside: string }

const hourMs = 3_600_000

/**
 * Loaded tables that the next statement finds again, in a folder of this process: at most so many bytes, those that were
 * asked longest ago go first, and none `keptMs` after it was last asked, whose session may be deleted by then. Only a cache:
 * whoever finds nothing loads anew.
 */
export const createTableCache = (scratch: () => Promise<string>, mostBytes: number, keptMs = hourMs) => {
  /** By path, those asked longest ago first. */
  const kept = new Map<string, { bytes: number; timer: NodeJS.Timeout }>()
  let count = 0

  const drop = async (path: string): Promise<void> => {
    clearTimeout(kept.get(path)?.timer)
    kept.delete(path)
    await rm(path, { force: true })
  }

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
      clearTimeout(kept.get(path)?.timer)
      kept.delete(path)
      if (bytes !== undefined) {
        // what cannot be removed goes with the folder
        const timer = setTimeout(() => void drop(path).catch(() => {}), keptMs).unref()
        kept.set(path, { bytes, timer })
      }
      let sum = [...kept.values()].reduce((all, one) => all + one.bytes, 0)
      for (const [old, one] of [...kept]) {
        if (sum <= mostBytes) return
        await drop(old)
        sum -= one.bytes
      }
    },
  }
}

export type TableCache = ReturnType<typeof createTableCache>
