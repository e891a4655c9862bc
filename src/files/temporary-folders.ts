import { once } from 'node:events'
import { lstat, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const prefix = 'mason-files-'
const socketName = 'alive'

type TemporaryFolder = { path: string; server: Server }

/**
 * A folder of this process below the machine's temporary one, removed at the end. A socket in it listens while the
 * process lives, frozen or not: a process id would mean nothing in another container on the same disk.
 */
export const openTemporaryRoot = () => {
  let current: Promise<TemporaryFolder> | null = null

  return {
    /** A folder that only this user can read; created again when another program has removed it. */
    async folder(): Promise<string> {
      const before = current
      const known = before && (await before.catch(() => null))
      if (known && (await lstat(known.path).catch(() => null))) return known.path
      // of several callers that miss it, one creates the next and all get that one
      if (current !== null && current !== before) return (await current).path
      known?.server.close()
      current = createFolder()
      return (await current).path
    },
    /** Removes the folders that dead processes left. */
    async sweep(): Promise<void> {
      const root = tmpdir()
      const names = await readdir(root).catch(() => [])
      for (const name of names)
        if (name.startsWith(prefix) && (await isAbandoned(join(root, name))))
          // one that cannot be removed does no harm, and the next start tries again
          await rm(join(root, name), { recursive: true, force: true }).catch(() => {})
    },
    async [Symbol.asyncDispose]() {
      const last = await current?.catch(() => null)
      current = null
      last?.server.close()
      if (last) await rm(last.path, { recursive: true, force: true })
    },
  }
}

/** A folder below `parent` that is removed on disposal. `newPath`: a path in it that nothing else uses. */
export const openWorkFolder = async (parent: string): Promise<AsyncDisposable & { newPath(): string }> => {
  const path = await mkdtemp(join(parent, 'work-'))
  let count = 0
  return {
    newPath: () => join(path, `f${count++}`),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  }
}

const createFolder = async (): Promise<TemporaryFolder> => {
  const path = await mkdtemp(join(tmpdir(), prefix))
  const server = createServer((socket) => socket.destroy()).unref()
  const draft = join(path, `${socketName}.new`)
  try {
    server.listen(draft)
    await once(server, 'listening')
    // renamed once it listens, or a sweep could come too early
    await rename(draft, join(path, socketName))
    // a connection that fails for want of file handles proves enough that this process lives
    server.on('error', () => {})
  } catch {
    // no sockets on this disk, or too long a path: then no process sweeps the folder either
  }
  return { path, server }
}

/** Whether a folder is this user's and its socket refuses connections. One without a socket may be new: it stays. */
const isAbandoned = async (path: string): Promise<boolean> => {
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
