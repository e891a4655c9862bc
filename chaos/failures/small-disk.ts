import { type FileHandle, mkdtemp, open, rm, rmdir } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { run } from './run.ts'

/** Why a full disk cannot be had here, or null. */
export const diskMissing = userInfo().uid === 0 ? null : 'mounting a small disk takes root'

/** A file system of its own that can be filled and emptied. */
export type SmallDisk = AsyncDisposable & {
  path: string
  /** Takes all space that is left. */
  fill(): Promise<void>
  /** Gives it back. */
  free(): Promise<void>
}

export const mountSmallDisk = async (megabytes: number): Promise<SmallDisk> => {
  const path = await mkdtemp(join(tmpdir(), 'mason-disk-'))
  await run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0755`, 'tmpfs', path])
  const ballast = join(path, 'ballast')
  return {
    path,
    async fill() {
      const file = await open(ballast, 'a')
      try {
        for (const size of [2 ** 20, 2 ** 12]) await writeUntilFull(file, Buffer.alloc(size))
      } finally {
        await file.close()
      }
    },
    free: () => rm(ballast, { force: true }),
    async [Symbol.asyncDispose]() {
      await run('umount', ['-l', path])
      await rmdir(path)
    },
  }
}

const writeUntilFull = async (file: FileHandle, bytes: Buffer): Promise<void> => {
  try {
    for (;;) await file.write(bytes)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}
