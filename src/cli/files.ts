import { readFile, stat } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import type { RunRequest } from '../state/run-request.ts'
import { UsageError } from './failure.ts'

type RequestFile = NonNullable<RunRequest['files']>[number]

const types: Record<string, string> = {
  '.csv': 'text/csv',
  '.tsv': 'text/tab-separated-values',
  '.txt': 'text/plain',
  '.log': 'text/plain',
  '.md': 'text/markdown',
  '.html': 'text/html',
  '.htm': 'text/html',
  '.xml': 'application/xml',
  '.json': 'application/json',
  '.jsonl': 'application/jsonl',
  '.ndjson': 'application/jsonl',
  '.yaml': 'application/yaml',
  '.yml': 'application/yaml',
  '.pdf': 'application/pdf',
  '.docx': 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  '.pptx': 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  '.xlsx': 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.zip': 'application/zip',
}

/** A request may weigh 32 MiB; base64 makes four bytes of three, and the rest of it needs some room. */
const mostBytes = 23 * 1024 * 1024

/** The files named on the command line as a request carries them. What can't be read is a UsageError. */
export const readFiles = async (paths: readonly string[]): Promise<RequestFile[]> => {
  const twice = paths.find((path, index) => paths.findIndex((p) => basename(p) === basename(path)) < index)
  if (twice !== undefined)
    throw new UsageError(
      `two files are called ${basename(twice)}`,
      'rename one: the run knows its files by name',
    )
  const files = await Promise.all(paths.map(readOne))
  const bytes = files.reduce((sum, { content_base64 = '' }) => sum + content_base64.length * 0.75, 0)
  if (bytes > mostBytes)
    throw new UsageError(
      'the files are larger than 23 MB together, more than one request may carry',
      'leave some out, or put them where MASON_FILES_ROOT points and submit them as local mappings',
    )
  return files
}

const readOne = async (path: string): Promise<RequestFile> => {
  const info = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(
      error.code === 'ENOENT' ? `there is no file ${path}` : `${path} cannot be read: ${error.message}`,
    )
  })
  if (!info.isFile()) throw new UsageError(`${path} is no file`)
  if (info.size > mostBytes)
    throw new UsageError(`${path} is larger than 23 MB, more than one request may carry`)
  const bytes = await readFile(path).catch((error: Error) => {
    throw new UsageError(`${path} cannot be read: ${error.message}`)
  })
  return {
    name: basename(path),
    type: types[extname(path).toLowerCase()] ?? 'application/octet-stream',
    content_base64: bytes.toString('base64'),
  }
}
