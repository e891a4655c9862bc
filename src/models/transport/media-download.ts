import type { RequestTimeouts } from './exchange-control.ts'
import { runHttpExchange, type Transport } from './http-exchange.ts'
import { createBadReplyError, type ProviderError } from './provider-errors.ts'

/** Where the bytes are, and for how long they may take. */
export type MediaDownload = {
  url: string
  headers?: Record<string, string>
  endpoint: { base_url: string; allow_private: boolean; timeouts: RequestTimeouts }
  endsAtMs: number
}

/** A private address is followed only at the endpoint's own origin: any other one came from data. */
const allowsPrivate = ({ url, endpoint }: MediaDownload): boolean =>
  endpoint.allow_private && URL.canParse(url) && new URL(url).origin === new URL(endpoint.base_url).origin

/** The bytes of an image, a video or a recording that a vendor made. Rejects only when the caller aborts. */
export const downloadMedia = async (
  transport: Transport,
  download: MediaDownload,
  signal: AbortSignal,
): Promise<{ base64: string; mime_type: string | null } | { error: ProviderError }> => {
  const { url, headers = {}, endpoint, endsAtMs } = download
  let body: { base64?: unknown; mime_type?: string | null } = {}
  const { error, thrown } = await runHttpExchange(
    transport,
    {
      request: { method: 'GET', url, headers, body: null, maxRedirects: 3 },
      endpoint: { timeouts: endpoint.timeouts, allow_private: allowsPrivate(download) },
      endsAtMs,
      expects: 'bytes',
      done: null,
      take: ({ value }) => {
        body = value as typeof body
        return true
      },
    },
    signal,
  )
  if (error !== undefined) return { error }
  const { base64, mime_type = null } = body
  return thrown === undefined && typeof base64 === 'string'
    ? { base64, mime_type }
    : { error: createBadReplyError('sent no file where its result should be', false) }
}
