import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const sane = /^[A-Za-z0-9][A-Za-z0-9._:@/+=-]{0,127}$/

export const newRequestId = (): string => `req_${randomBytes(12).toString('hex')}`

/** The caller's own id when it is safe in logs and headers, else a new one. */
export const requestIdOf = (request: IncomingMessage): string => {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && sane.test(given) ? given : newRequestId()
}
