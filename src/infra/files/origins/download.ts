import { openDeadline } from '../../../state/deadline.ts'
import { isMasonError } from '../../../state/errors.ts'
import type { Egress } from '../../egress/port.ts'
import { chunksOf } from '../../egress/unpack.ts'
import { FileFault } from './fault.ts'
import { type Saved, save, tooLarge } from './save.ts'

type Request = {
  url: string
  /** What it is called where something went wrong; never with the query, which may hold a key. */
  shown: string
  headers?: Record<string, string>
  allowPrivate?: boolean
  maxRedirects?: number
  maxBytes: number
  maxMs: number
  /** What an answer that is no 200 means. */
  refusal(status: number): string
}

/** Fetches a file to a path of ours through egress, within bounds of bytes and time. */
export const download = async (
  egress: Egress,
  request: Request,
  path: string,
  signal: AbortSignal,
): Promise<Saved> => {
  using deadline = openDeadline(request.maxMs, signal)
  try {
    const { status, headers, body } = await egress.request(request.url, {
      signal: deadline.signal,
      ...(request.headers && { headers: request.headers }),
      ...(request.allowPrivate !== undefined && { allowPrivate: request.allowPrivate }),
      ...(request.maxRedirects !== undefined && { maxRedirects: request.maxRedirects }),
    })
    try {
      if (status !== 200) throw new FileFault(request.refusal(status), { passing: isPassing(status) })
      if (Number(headers.get('content-length') ?? 0) > request.maxBytes) throw tooLarge(request.maxBytes)
      return await save(chunksOf(body), path, request.maxBytes, deadline.signal)
    } finally {
      body.cancel()
    }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof FileFault) throw error
    if (deadline.signal.aborted)
      throw new FileFault(
        `${request.shown} did not send it within ${request.maxMs / 1000} s; try again later, or upload it`,
        { passing: true },
      )
    if (isMasonError(error, 'egress_refused'))
      throw new FileFault(`${error.message}; use an address that anybody can reach, or upload the file`)
    throw new FileFault(
      `${request.shown} could not be reached (${reasonOf(error)}); check the address, or upload the file`,
      { passing: true },
    )
  }
}

/** Too early, too many, or a fault of the other side: all others are meant. */
const isPassing = (status: number): boolean => status >= 500 || [408, 425, 429].includes(status)

/** A code and no more: words could hold the address. */
const reasonOf = (error: unknown): string => {
  const { code, cause } = error as { code?: string; cause?: { code?: string } }
  return code ?? cause?.code ?? 'the connection broke off'
}
