import { createRedisBackend } from 'bullmq'
import { Redis, type RedisOptions } from 'ioredis'
import type { Log } from '../../state/ports/log.ts'
import { settlesWithin } from '../lib/timeouts.ts'
import { describeQueueError, type QueueDriver } from './queue-driver.ts'
import { watchQueueOwner } from './queue-owner.ts'

type ConnectionSettings = RedisOptions & { replyMapping: 'legacy' }

const connectionSettings = {
  replyMapping: 'legacy',
  connectTimeout: 5_000,
  disconnectTimeout: 300,
  keepAlive: 10_000,
  retryStrategy: (times: number) => Math.min(100 * 2 ** Math.min(times, 5), 2_000),
  // After a failover the old primary still answers, read-only: find the new one.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
} satisfies ConnectionSettings

/**
 * Senders fail at once instead of queueing commands. Callers have their own deadline of a second, because
 * `commandTimeout` halves the throughput.
 */
const senderSettings = {
  ...connectionSettings,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 1,
  socketTimeout: 5_000,
} satisfies ConnectionSettings

/** Receivers wait for the server as long as it takes. The socket timeout is longer than the 10 s that BullMQ blocks at most. */
const receiverSettings = {
  ...connectionSettings,
  maxRetriesPerRequest: null,
  socketTimeout: 30_000,
} satisfies ConnectionSettings

/** A connection that retries for ever and never emits an unhandled error. */
function connect(
  url: string,
  options: ConnectionSettings,
  onError: (error: Error) => void = () => {},
): Redis {
  const connection = new Redis(url, options)
  connection.on('error', onError)
  return connection
}

/** Disconnects once: a second call would start ioredis' timer for a closed socket and keep the process alive. */
export function disconnectRedis(connection: Redis): void {
  if (connection.status !== 'end') connection.disconnect()
}

/** A connection for commands that fail at once while the server is down. */
export const connectRedisSender = (url: string, onError?: (error: Error) => void): Redis =>
  connect(url, senderSettings, onError)

/** A connection for subscriptions. It has no pending commands, hence no socket timeout; keep-alive finds dead peers. */
export const connectRedisSubscriber = (url: string): Redis =>
  connect(url, { ...connectionSettings, maxRetriesPerRequest: null })

/** The receiving connection. BullMQ duplicates it for its blocking calls; `all` gets those copies too. */
export function connectRedisReceiver(url: string, all: Redis[]): Redis {
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

/** Warns about any policy but `noeviction`, under which Redis silently drops queued jobs. */
async function warnAboutEviction(sender: Redis, log: Log): Promise<void> {
  const info = await sender.info('memory')
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1]
  if (policy === undefined || policy === 'noeviction') return
  log.warn(
    { policy, remedy: 'set maxmemory-policy to noeviction' },
    'Redis may evict queued jobs when memory is full',
  )
}

/** Logs once that the connection is lost and once that it is back, however many attempts lie between. */
function watchConnection(sender: Redis, log: Log, readLastProblem: () => string, closing: AbortSignal): void {
  let up = false
  let checked = false
  sender.on('ready', () => {
    up = true
    log.info({}, 'queue: connected to Redis')
    if (checked) return
    checked = true
    warnAboutEviction(sender, log).catch((error) =>
      log.debug({ error }, 'queue: Redis does not report its eviction policy'),
    )
  })
  sender.on('close', () => {
    if (up && !closing.aborted)
      log.warn({ error: readLastProblem() }, 'queue: lost the connection to Redis, retrying')
    up = false
  })
}

/** Opens the connections. Waits up to `patienceMs` for the server, then keeps trying in the background. */
export async function openRedisQueue(
  options: { url: string; prefix: string; databaseId?: string; log: Log },
  patienceMs: number,
): Promise<QueueDriver> {
  const connections: Redis[] = []
  const closing = new AbortController()
  let lastProblem = 'not connected yet'
  const sender = connectRedisSender(options.url, (error) => {
    lastProblem = describeQueueError(error)
  })
  connections.push(sender)
  sender.on('ready', () => {
    lastProblem = 'the connection was lost'
  })
  watchConnection(sender, options.log, () => lastProblem, closing.signal)
  const owner = watchQueueOwner(sender, options)
  const close = async () => {
    closing.abort()
    await settlesWithin(sender.quit(), 500)
    for (const connection of connections) disconnectRedis(connection)
  }
  // Opened for the first consumer: a process that only submits needs one connection.
  let receiver: Redis | undefined

  const ready = new Promise((resolve) => sender.once('ready', resolve))
  if (!(await settlesWithin(ready, patienceMs))) {
    options.log.warn({ error: lastProblem }, 'queue: Redis does not respond, retrying in the background')
  } else {
    const refusal = await owner.check().catch((error: unknown) => {
      options.log.warn({ error }, 'queue: the owner of the prefix is unknown; every job checks it again')
      return null
    })
    if (refusal !== null) {
      await close()
      throw refusal
    }
  }
  // restarted empty, Redis learns the owner again
  sender.on('ready', () => void owner.isOurs(true).catch(() => {}))

  return {
    backend: (name, queueOptions, flags = {}) => {
      const receives = flags.withBlockingConnection === true
      if (receives) receiver ??= connectRedisReceiver(options.url, connections)
      const redisOptions = {
        ...queueOptions,
        prefix: options.prefix,
        connection: receives && receiver ? receiver : sender,
        // A failed version check would break a sender permanently, and senders need none.
        skipVersionCheck: !receives,
      }
      return createRedisBackend(name, redisOptions, flags)
    },
    prefix: options.prefix,
    sender,
    openReceiver: () => connectRedisReceiver(options.url, connections),
    problem: () => owner.problem() ?? (sender.status === 'ready' ? null : lastProblem),
    roundTrip: () => sender.ping(),
    isOurs: () => owner.isOurs(),
    close,
  }
}
