import type { Egress, EgressResponse } from '../../../infra/egress/egress-port.ts'
import { parseJsonOrText } from '../../../infra/lib/json-text.ts'
import { openDeadline } from '../../../state/deadline.ts'
import { MasonError } from '../../../state/errors.ts'
import type { ProviderSettings } from './provider.ts'

/** What a request may have, beside its address. */
export type EgressInit = Parameters<Egress['request']>[1]

const maxBodyBytes = 64 * 1024

/** It is not known whether `who` acted. */
export const createUnclearError = (who: string, what: string, remedy: string, cause?: unknown): MasonError =>
  new MasonError('effect_unknown', `${who} ${what}, so it is not known whether it acted`, { remedy, cause })

/** The JSON of a body; its text where it is none. Throws where it is too large or breaks off. */
const readJsonBody = async ({ body }: EgressResponse, who: string): Promise<unknown> => {
  const chunks: Uint8Array[] = []
  let size = 0
  for (let chunk = await body.read(); chunk !== null; chunk = await body.read()) {
    size += chunk.length
    chunks.push(chunk)
    if (size <= maxBodyBytes) continue
    body.cancel()
    throw createUnclearError(who, `sent more than ${maxBodyBytes} bytes`, 'look the payment up there')
  }
  return parseJsonOrText(Buffer.concat(chunks).toString())
}

/** Requests whose bodies and answers are JSON, each within the time limit of the provider, to no other address by a redirect. */
export const createJsonExchange =
  (
    egress: Egress,
    { timeout_ms, allow_private }: Pick<ProviderSettings, 'timeout_ms' | 'allow_private'>,
    who: string,
  ) =>
  async (url: string, init: EgressInit, signal: AbortSignal): Promise<{ status: number; body: unknown }> => {
    using deadline = openDeadline(timeout_ms, signal)
    const headers = { accept: 'application/json', 'content-type': 'application/json', ...init.headers }
    const response = await egress.request(url, {
      ...init,
      headers,
      signal: deadline.signal,
      allowPrivate: allow_private,
      maxRedirects: 0,
    })
    return { status: response.status, body: await readJsonBody(response, who) }
  }
