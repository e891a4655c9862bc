import { once } from 'node:events'
import { lstat, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const prefix = 'mason-files-'
const socketName = 'alive'

/** Where this process puts what it needs of files for a while. */
type Scratch = AsyncDisposable & {
  /** A folder that only this user can read; made anew when something has cleared it away. */
  folder(): Promise<string>
  /** Removes the folders that dead processes left behind. */
  sweep(): Promise<void>
}

type Made = { path: string; server: Server }

/**
 * A folder of this process among the machine's temporary ones, removed at the end. A socket listens in it while the
 * process lives, frozen or not: the number of a process would mean nothing in another container on the same disk.
 */
export const openScratch = (): Scratch => {
  let made: Promise<Made> | null = null

  return {
    async folder() {
      const before = made
      const known = before && (await before.catch(() => null))
      if (known && (await isThere(known.path))) return known.path
      // one of those that find it gone makes the next, and all of them get that
      if (made !== null && made !== before) return (await made).path
      known?.server.close()
      made = make()
      return (await made).path
    },
    async sweep() {
      const root = tmpdir()
      const names = await readdir(root).catch(() => [])
      for (const name of names)
        if (name.startsWith(prefix) && (await isLeft(join(root, name))))
          // what cannot be removed does no harm, and the next start tries again
          await rm(join(root, name), { recursive: true, force: true }).catch(() => {})
    },
    async [Symbol.asyncDispose]() {
      const old = await made?.catch(() => null)
      made = null
      old?.server.close()
      if (old) await rm(old.path, { recursive: true, force: true })
    },
  }
}

const make = async (): Promise<Made> => {
  const path = await mkdtemp(join(tmpdir(), prefix))
  const server = createServer((socket) => socket.destroy()).unref()
  const draft = join(path, `${socketName}.new`)
  try {
    server.listen(draft)
    await once(server, 'listening')
    // under its name only now that it listens, or a sweep could come too early
    await rename(draft, join(path, socketName))
    // a caller that cannot be let in for want of handles is told enough by that
    server.on('error', () => {})
  } catch {
    // no sockets on this disk, or too long a path: then nobody sweeps the folder either
  }
  return { path, server }
}

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )

/** Ours, and nobody listens in it any more. One without a socket may be just being made: it stays. */
const isLeft = async (path: string): Promise<boolean> => {
  const info = await lstat(path).catch(() => null)
  if (!info?.isDirectory() || info.uid !== process.getuid?.()) return false
  return new Promise((resolve) => {
    const socket = connect(join(path, socketName))
    socket.once('connect', () => {
      socket.destroy()
      resolve(false)
    })
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })
}
