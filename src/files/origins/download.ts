import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Egress } from '../../infra/egress/egress-port.ts'
import { readBodyChunks } from '../../infra/egress/response.ts'
import { openDeadline } from '../../state/deadline.ts'
import { isMasonError } from '../../state/errors.ts'
import { FileError, toDiskErrors } from './file-error.ts'

/** A file on this machine: its path, its size and the SHA-256 of its bytes in hexadecimal. */
export type SavedFile = { path: string; bytes: number; sha256: string }

type DownloadRequest = {
  url: string
  /** The name of the source in error messages; never with the query, which may hold a key. */
  source: string
  init?: { headers: Record<string, string>; allowPrivate: boolean; maxRedirects: number }
  maxBytes: number
  maxMs: number
  /** The error message for a response whose status is not 200. */
  toRefusal(status: number): string
}

/** Downloads a file through egress to a path on this machine, within limits of bytes and time. Throws `FileError`. */
export const downloadFile = async (
  egress: Egress,
  request: DownloadRequest,
  path: string,
  signal: AbortSignal,
): Promise<SavedFile> => {
  using deadline = openDeadline(request.maxMs, signal)
  try {
    const { status, headers, body } = await egress.request(request.url, {
      ...request.init,
      signal: deadline.signal,
    })
    try {
      if (status !== 200)
        throw new FileError(request.toRefusal(status), { isTransient: isTransientStatus(status) })
      if (Number(headers.get('content-length') ?? 0) > request.maxBytes)
        throw createTooLargeError(request.maxBytes)
      return await saveStream(readBodyChunks(body), path, request.maxBytes, deadline.signal)
    } finally {
      body.cancel()
    }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof FileError) throw error
    if (deadline.signal.aborted)
      throw new FileError(
        `${request.source} did not send it within ${request.maxMs / 1000} s; try again later, or upload it`,
        { isTransient: true },
      )
    if (isMasonError(error, 'egress_refused'))
      throw new FileError(`${error.message}; use a public address, or upload the file`)
    throw new FileError(
      `${request.source} could not be reached (${toErrorReason(error)}); check the address, or upload the file`,
      { isTransient: true },
    )
  }
}

/** Files from URLs are stored in the database afterwards, so the limit is that of an upload. */
const maxUrlBytes = 64 * 1024 * 1024
const maxUrlMs = 60_000

/** Downloads the file at a URL that a business named. Only public addresses; egress checks each redirect again. */
export const downloadUrl = (
  egress: Egress,
  url: string,
  path: string,
  signal: AbortSignal,
): Promise<SavedFile> => {
  const source = URL.canParse(url) ? new URL(url).host : 'the address'
  const toRefusal = (status: number): string =>
    `${source} answered with status ${status}${status === 404 ? ' (not there)' : ''}; check the address, or upload the file`
  return downloadFile(
    egress,
    { url, source, maxBytes: maxUrlBytes, maxMs: maxUrlMs, toRefusal },
    path,
    signal,
  )
}

const createTooLargeError = (maxBytes: number): FileError =>
  new FileError(
    `it is larger than ${Math.round(maxBytes / 1024 / 1024)} MB; split it or remove what is not needed`,
  )

/** Counts and hashes bytes, and gives each chunk to `write`. Throws `FileError` when there are more than `maxBytes`. */
export const measureBytes = async (
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
  write?: (chunk: Uint8Array) => Promise<void>,
): Promise<Omit<SavedFile, 'path'>> => {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > maxBytes) throw createTooLargeError(maxBytes)
    hash.update(chunk)
    await write?.(chunk)
  }
  return { bytes, sha256: hash.digest('hex') }
}

/** Writes chunks to a path on this machine. Throws `FileError`. */
export const saveStream = async (
  stream: AsyncIterable<Uint8Array>,
  path: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<SavedFile> => {
  await using file = await toDiskErrors(open(path, 'w', 0o600))
  const write = (chunk: Uint8Array): Promise<void> => toDiskErrors(file.writeFile(chunk))
  const body = Readable.from(stream, { objectMode: false })
  const measured = await pipeline(body, (chunks) => measureBytes(chunks, maxBytes, write), { signal })
  return { path, ...measured }
}

/** Too early, too many requests, or an error of the server; every other status is final. */
const isTransientStatus = (status: number): boolean => status >= 500 || [408, 425, 429].includes(status)

/** The code of an error alone: its message could hold the address. */
export const toErrorReason = (error: unknown): string => {
  const { code, cause } = error as { code?: string; cause?: { code?: string } }
  return code ?? cause?.code ?? 'the connection broke off'
}
