import { type LookupAddress, type LookupAllOptions, lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { Agent, buildConnector } from 'undici'
import { MasonError } from '../../state/errors.ts'
import { addressFault } from './addresses.ts'

/** Gives every address of a name; node's own, or one of a test. */
export type Resolve = (
  host: string,
  options: LookupAllOptions,
  done: (error: Error | null, addresses: LookupAddress[]) => void,
) => void

export type AgentOptions = {
  allowPrivate: boolean
  resolve?: Resolve | undefined
  connectTimeoutMs?: number | undefined
}

export const refused = (host: string, why: string): MasonError =>
  new MasonError('egress_refused', `${host} is not called: ${why}`, {
    remedy: 'use a public address, or set allow_private on the endpoint if this one is meant',
    detail: { host },
  })

const checkAll = (host: string, addresses: readonly LookupAddress[], allowPrivate: boolean): void => {
  for (const { address } of addresses) {
    const fault = addressFault(address, allowPrivate)
    if (fault) throw refused(host, fault)
  }
  if (addresses.length === 0) throw refused(host, 'its name has no address')
}

/** What a socket resolves its host with: one bad address refuses the name, and the socket gets only checked ones. */
const guardedLookup =
  ({ allowPrivate, resolve = lookup }: AgentOptions): LookupFunction =>
  (host, options, done) =>
    resolve(host, { ...options, all: true }, (error, addresses) => {
      if (error) return done(error, [])
      try {
        checkAll(host, addresses, allowPrivate)
      } catch (fault) {
        return done(fault as Error, [])
      }
      if (options.all) return done(null, addresses)
      const [first] = addresses
      return done(null, first?.address ?? '', first?.family)
    })

/**
 * A pool of connections to checked addresses. The clocks of requests are the caller's; only connecting is timed here.
 * Public and private ones need an agent each: a connection that one caller may use must not serve another that may not.
 */
export const createAgent = (options: AgentOptions): Agent => {
  const connect = buildConnector({
    timeout: options.connectTimeoutMs ?? 10_000,
    lookup: guardedLookup(options),
    allowH2: false,
  })
  return new Agent({
    connect: (target, done) => {
      // a literal is never looked up
      const fault = isIP(target.hostname) === 0 ? null : addressFault(target.hostname, options.allowPrivate)
      if (fault) done(refused(target.hostname, fault), null)
      else connect(target, done)
    },
    connections: 1024,
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: 32 * 1024,
  })
}
