import { createRedisBackend } from 'bullmq'
import { Redis, type RedisOptions } from 'ioredis'
import type { Log } from '../../state/ports.ts'
import { settlesWithin } from './deadline.ts'
import { describeError, type Engine } from './engine.ts'

type Settings = RedisOptions & { replyMapping: 'legacy' }

const settings = {
  replyMapping: 'legacy',
  connectTimeout: 5_000,
  disconnectTimeout: 300,
  keepAlive: 10_000,
  retryStrategy: (times: number) => Math.min(100 * 2 ** Math.min(times, 5), 2_000),
  // After a failover the old primary still answers, read-only: find the new one.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
} satisfies Settings

/**
 * Senders fail at once instead of piling up commands. Callers wait a second at most, by a deadline of their own:
 * `commandTimeout` costs half of what can be sent.
 */
const senderSettings = {
  ...settings,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 1,
  socketTimeout: 5_000,
} satisfies Settings

/** Receivers wait for the server as long as it takes. Longer than the 10 s that BullMQ blocks at most. */
const receiverSettings = {
  ...settings,
  maxRetriesPerRequest: null,
  socketTimeout: 30_000,
} satisfies Settings

/** A connection that goes on trying for ever and never emits an unhandled error. */
function connect(url: string, options: Settings, onError: (error: Error) => void = () => {}): Redis {
  const connection = new Redis(url, options)
  connection.on('error', onError)
  return connection
}

/** A second disconnect would start ioredis' timer for a socket that is gone, and hold the process. */
export function disconnect(connection: Redis): void {
  if (connection.status !== 'end') connection.disconnect()
}

export const connectSender = (url: string, onError?: (error: Error) => void): Redis =>
  connect(url, senderSettings, onError)

/** A connection in subscriber mode has no pending commands, hence no socket time-out; keep-alive finds dead peers. */
export const connectSubscriber = (url: string): Redis =>
  connect(url, { ...settings, maxRetriesPerRequest: null })

/** The receiving connection; BullMQ duplicates it for its blocking calls, and `all` holds those copies too. */
function connectReceiver(url: string, all: Redis[]): Redis {
  const receiver = connect(url, receiverSettings)
  receiver.duplicate = (override) => {
    const copy = new Redis({ ...receiver.options, ...override, replyMapping: 'legacy' })
    copy.on('error', () => {})
    all.push(copy)
    return copy
  }
  all.push(receiver)
  return receiver
}

/** Redis drops queues silently under any other policy than `noeviction`. */
async function warnOfEviction(sender: Redis, log: Log): Promise<void> {
  const info = await sender.info('memory')
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1]
  if (policy === undefined || policy === 'noeviction') return
  log.warn(
    { policy, remedy: 'set maxmemory-policy to noeviction' },
    'Redis may evict queued jobs when memory is short',
  )
}

/** Says once that the connection is lost and once that it is back, however often it is tried in between. */
function watchConnection(sender: Redis, log: Log, lastFault: () => string, closing: AbortSignal): void {
  let up = false
  let checked = false
  sender.on('ready', () => {
    up = true
    log.info({}, 'queue: connected to Redis')
    if (checked) return
    checked = true
    warnOfEviction(sender, log).catch((error) =>
      log.debug({ error }, 'queue: Redis would not tell its eviction policy'),
    )
  })
  sender.on('close', () => {
    if (up && !closing.aborted)
      log.warn({ error: lastFault() }, 'queue: connection to Redis lost, trying again')
    up = false
  })
}

/** Opens the connections; waits up to `patienceMs` for the server and else goes on trying in the background. */
export async function openRedis(
  options: { url: string; prefix?: string; log: Log },
  patienceMs: number,
): Promise<Engine> {
  const connections: Redis[] = []
  const closing = new AbortController()
  let lastFault = 'not connected yet'
  const sender = connectSender(options.url, (error) => {
    lastFault = describeError(error)
  })
  connections.push(sender)
  sender.on('ready', () => {
    lastFault = 'the connection was lost'
  })
  watchConnection(sender, options.log, () => lastFault, closing.signal)
  // Made when the first consumer asks: a process that only submits needs one connection.
  let receiver: Redis | undefined

  const ready = new Promise((resolve) => sender.once('ready', resolve))
  if (!(await settlesWithin(ready, patienceMs))) {
    options.log.warn({ error: lastFault }, 'queue: Redis does not answer, trying again in the background')
  }

  return {
    backend: (name, queueOptions, flags = {}) => {
      const receives = flags.withBlockingConnection === true
      if (receives) receiver ??= connectReceiver(options.url, connections)
      return createRedisBackend(
        name,
        {
          ...queueOptions,
          ...(options.prefix === undefined ? {} : { prefix: options.prefix }),
          connection: receives && receiver ? receiver : sender,
          // A failed version check would break a sender for good, and it needs none.
          skipVersionCheck: !receives,
        },
        flags,
      )
    },
    fault: () => (sender.status === 'ready' ? null : lastFault),
    roundTrip: () => sender.ping(),
    encode: (data) => data,
    decode: (data) => data,
    close: async () => {
      closing.abort()
      await settlesWithin(sender.quit(), 500)
      for (const connection of connections) disconnect(connection)
    },
  }
}
