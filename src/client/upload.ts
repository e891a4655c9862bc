import { sleep } from '../state/sleep.ts'
import { ClientError, isTransient } from './client-error.ts'
import { computeDelayMs, type Http, type HttpQuery } from './http.ts'

/** A file that runs can name by `file_id`. */
export type ReceivedFile = { id: string; sha256: string | null; bytes: number }

/** Name, type and progress of an upload. */
export type UploadOptions = {
  name: string
  /** Absent: the type of the Blob, else application/octet-stream. */
  type?: string | undefined
  /** Called with the bytes that the server has. */
  onProgress?: ((bytes: number) => void) | undefined
  signal?: AbortSignal | undefined
}

const chunkBytes = 8 * 1024 * 1024
const maxTries = 10

/**
 * Uploads a file in chunks. After a lost connection it asks what has arrived and goes on from there. The first request, which
 * creates the file, is not repeated.
 */
export const uploadFile = async (
  http: Http,
  query: HttpQuery,
  content: Blob | Uint8Array<ArrayBuffer>,
  { name, type, onProgress, signal }: UploadOptions,
): Promise<ReceivedFile> => {
  const blob = content instanceof Blob ? content : new Blob([content])
  let file = await http.json<ReceivedFile>('POST', '/v1/files', {
    query,
    headers: {
      'X-File-Name': encodeURIComponent(name),
      'Content-Type': type || blob.type || 'application/octet-stream',
      'Upload-Length': String(blob.size),
    },
    signal,
  })
  const path = `/v1/files/${file.id}`
  let tries = 0
  while (file.bytes < blob.size || file.sha256 === null) {
    const from = file.bytes
    try {
      file = await http.json<ReceivedFile>('PATCH', path, {
        query,
        headers: { 'Upload-Offset': String(from), 'Content-Type': 'application/octet-stream' },
        body: blob.slice(from, from + chunkBytes),
        signal,
        timeoutMs: 300_000,
      })
    } catch (error) {
      const isElsewhere = error instanceof ClientError && error.code === 'upload_offset'
      tries += 1
      if (!(isElsewhere || isTransient(error)) || tries >= maxTries) throw error
      await sleep(computeDelayMs(tries, error), signal)
      file = await http.json<ReceivedFile>('GET', path, { query, signal, repeatable: true })
    }
    if (file.bytes > from) tries = 0
    onProgress?.(file.bytes)
  }
  return { id: file.id, sha256: file.sha256, bytes: file.bytes }
}
