import type { IncomingMessage } from 'node:http'
import { createTimeOrderedId } from '../../../infra/lib/ids.ts'

const safeId = /^[A-Za-z0-9][A-Za-z0-9._:@/+=-]{0,127}$/

/** A new id: `req_` and 24 hexadecimal digits. */
export const createRequestId = (): string => `req_${createTimeOrderedId().slice(8)}`

/** The caller's own `x-request-id` when it is safe in logs and headers, else a new id. */
export const readRequestId = ({ headers: { 'x-request-id': sent } }: IncomingMessage): string =>
  typeof sent === 'string' && safeId.test(sent) ? sent : createRequestId()
