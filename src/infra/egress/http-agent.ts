import { type LookupAddress, type LookupAllOptions, lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { Agent, buildConnector } from 'undici'
import { MasonError } from '../../state/errors.ts'
import { checkAddress } from './addresses.ts'

/** Options of one connection pool. */
export type HttpAgentOptions = {
  allowPrivate: boolean
  /** Resolves a name to all its addresses, in place of `lookup` of node:dns. */
  resolve?(
    host: string,
    options: LookupAllOptions,
    done: (error: Error | null, addresses: LookupAddress[]) => void,
  ): void
  connectTimeoutMs?: number
}

/** The error for an address that must not be reached. */
export const createEgressRefusedError = (host: string, reason: string): MasonError =>
  new MasonError('egress_refused', `${host} is not called: ${reason}`, {
    remedy: 'use a public address, or set allow_private on the endpoint if this address is intended',
    detail: { host },
  })

/** The lookup of a socket: one refused address refuses the whole name, so the socket gets checked addresses only. */
const createCheckedLookup =
  ({ allowPrivate, resolve = lookup }: HttpAgentOptions): LookupFunction =>
  (host, options, done) =>
    resolve(host, { ...options, all: true }, (error, addresses) => {
      if (error) return done(error, [])
      const problems = addresses.map(({ address }) => checkAddress(address, allowPrivate))
      const [first] = addresses
      const problem = first ? problems.find((one) => one !== null) : 'its name has no address'
      if (problem) return done(createEgressRefusedError(host, problem), [])
      if (options.all) return done(null, addresses)
      return done(null, first?.address ?? '', first?.family)
    })

/**
 * A pool of connections to checked addresses. The caller limits the time of requests; only connecting has a limit here.
 * Public and private addresses need an agent each, so that a caller without `allowPrivate` never reuses a private connection.
 */
export const createHttpAgent = (options: HttpAgentOptions): Agent => {
  const connect = buildConnector({
    timeout: options.connectTimeoutMs ?? 10_000,
    lookup: createCheckedLookup(options),
    allowH2: false,
  })
  return new Agent({
    connect: (target, done) => {
      // a literal address is never looked up
      const problem = isIP(target.hostname) === 0 ? null : checkAddress(target.hostname, options.allowPrivate)
      if (problem) done(createEgressRefusedError(target.hostname, problem), null)
      else connect(target, done)
    },
    connections: 1024,
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: 32 * 1024,
  })
}
