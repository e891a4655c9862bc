import { readFile, stat } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import type { RunRequest } from '../../state/run-request.ts'
import { fileNameSchema } from '../../state/uploaded-file.ts'
import { UsageError } from './errors.ts'

type RequestFile = NonNullable<RunRequest['files']>[number]

const mediaTypes: Record<string, string> = {
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

/** A request may have 32 MiB. Base64 turns three bytes into four, and the other fields need space too. */
const maxBytes = 23 * 1024 * 1024

/** Reads the files named on the command line into the form of a request. Throws a UsageError for an unreadable one. */
export const readRequestFiles = async (paths: readonly string[]): Promise<RequestFile[]> => {
  const names = paths.map((path) => basename(path))
  const duplicate = names.find((name, index) => names.indexOf(name) < index)
  if (duplicate !== undefined)
    throw new UsageError(
      `two files are named ${duplicate}`,
      'rename one of them: a run identifies its files by name',
    )
  const files = await Promise.all(paths.map(readRequestFile))
  const bytes = files.reduce((sum, { content_base64 = '' }) => sum + content_base64.length * 0.75, 0)
  if (bytes > maxBytes)
    throw new UsageError(
      'the files have more than 23 MB together, the maximum of a request',
      'leave some out, or put them below MASON_FILES_ROOT and submit them as local mappings',
    )
  return files
}

const readRequestFile = async (path: string): Promise<RequestFile> => {
  const { error } = fileNameSchema.safeParse(basename(path))
  if (error) throw new UsageError(`${path}: ${error.issues[0]?.message}`, 'give it another name')
  const info = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(
      error.code === 'ENOENT' ? `${path} does not exist` : `${path} cannot be read: ${error.message}`,
    )
  })
  if (!info.isFile()) throw new UsageError(`${path} is not a file`)
  if (info.size > maxBytes) throw new UsageError(`${path} is larger than 23 MB, the maximum of a request`)
  const bytes = await readFile(path).catch((error: Error) => {
    throw new UsageError(`${path} cannot be read: ${error.message}`)
  })
  return {
    name: basename(path),
    type: mediaTypes[extname(path).toLowerCase()] ?? 'application/octet-stream',
    content_base64: bytes.toString('base64'),
  }
}
