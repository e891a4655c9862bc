import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { MasonError } from '../../state/errors.ts'

/**
 * Lays the files of a dump into `folder`, all or nothing: a process that is killed on the way leaves no half database.
 * Ten times quicker than PGlite's own loading, which goes through the file system of its WASM. Whoever calls has the lock.
 */
export const unpackDump = (tar: Buffer, folder: string): void => {
  const draft = `${folder}.new`
  rmSync(draft, { recursive: true, force: true })
  mkdirSync(draft, { mode: 0o700 })
  for (const { path, content } of entriesOf(tar))
    if (content) writeFileSync(join(draft, path), content, { mode: 0o600 })
    else mkdirSync(join(draft, path), { recursive: true, mode: 0o700 })
  try {
    renameSync(draft, folder)
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    throw new MasonError('invalid_settings', `${folder} holds files, but no database`, {
      remedy: `move it away to start anew, or set DATA_DIR to another folder than ${dirname(folder)}`,
      cause: error,
    })
  }
}

const block = 512

/** The entries of a plain tar as PGlite writes it: files, and folders (content null) before what is in them. */
function* entriesOf(tar: Buffer): Generator<{ path: string; content: Buffer | null }> {
  const textAt = (start: number, length: number): string =>
    tar.toString('latin1', start, start + length).split('\0', 1)[0] ?? ''
  for (let at = 0; at + block <= tar.length && tar[at] !== 0; ) {
    const size = Number.parseInt(textAt(at + 124, 12), 8)
    const content = at + block
    const isFolder = textAt(at + 156, 1) === '5'
    yield { path: textAt(at, 100), content: isFolder ? null : tar.subarray(content, content + size) }
    at = content + Math.ceil(size / block) * block
  }
}
