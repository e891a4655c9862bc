import { EventEmitter } from 'node:events'
import type { Redis } from 'ioredis'
import type { Log } from '../../state/ports/log.ts'
import { settlesWithin } from '../lib/timeouts.ts'

/** Best-effort messages between processes; a subscriber that depends on them must also poll. */
export type Hints = {
  /**
   * Sends without waiting; dropped without subscribers or when the server is down. Handlers run later, never inside this call.
   * `isOften`: not sent at all for a moment after one that no process has heard.
   */
  publish(channel: string, message: string, isOften?: boolean): void
  /** Resolves once hints arrive, or after a second while the server is down (it subscribes later). The result unsubscribes. */
  subscribe(channel: string, handler: (message: string) => void): Promise<() => Promise<void>>
  close(): Promise<void>
}

/** Options of `openHints`. */
export type HintOptions = { log: Log } & (
  | {
      kind: 'redis'
      url: string
      /** Begins the channels. */
      prefix: string
    }
  | { kind: 'embedded' }
)

/** Opens hints over Redis, or inside this process. */
export async function openHints(options: HintOptions): Promise<Hints> {
  if (options.kind === 'embedded') return createEmbeddedHints(options.log)
  return createRedisHints(await import('./redis.ts'), options.url, options.prefix, options.log)
}

const subscribeTimeoutMs = 1_000
/** How long hints of a channel without subscribers are not sent. */
const unheardMs = 50

/** Keeps an error of one handler from the other handlers. */
const guardHandler = (handler: (message: string) => void, log: Log) => (message: string) => {
  try {
    handler(message)
  } catch (error) {
    log.error({ error }, 'hints: a handler failed')
  }
}

function createEmbeddedHints(log: Log): Hints {
  const bus = new EventEmitter().setMaxListeners(0)
  return {
    publish: (channel, message) => void setImmediate(() => bus.emit(`hint:${channel}`, message)),
    subscribe: async (channel, handler) => {
      const listener = guardHandler(handler, log)
      bus.on(`hint:${channel}`, listener)
      return async () => void bus.off(`hint:${channel}`, listener)
    },
    close: async () => void bus.removeAllListeners(),
  }
}

type Subscription = { listeners: Set<(message: string) => void>; ready: Promise<unknown> }

function createRedisHints(
  redis: typeof import('./redis.ts'),
  url: string,
  queuePrefix: string,
  log: Log,
): Hints {
  const sender = redis.connectRedisSender(url)
  // channels, unlike keys, are common to all databases of a server
  const prefix = `${queuePrefix}:hint:${sender.options.db ?? 0}:`
  const subscriptions = new Map<string, Subscription>()
  const unheardUntil = new Map<string, number>()
  let subscriber: Redis | undefined

  const openSubscriber = () => {
    const connection = redis.connectRedisSubscriber(url)
    connection.on('message', (key, message) => {
      for (const listener of subscriptions.get(key)?.listeners ?? []) listener(message)
    })
    return connection
  }

  const subscriptionTo = (key: string): Subscription => {
    subscriber ??= openSubscriber()
    let subscription = subscriptions.get(key)
    if (!subscription) {
      subscription = { listeners: new Set(), ready: subscriber.subscribe(key) }
      subscriptions.set(key, subscription)
    }
    return subscription
  }

  const leave = async (key: string, listener: (message: string) => void) => {
    const subscription = subscriptions.get(key)
    if (!subscription?.listeners.delete(listener) || subscription.listeners.size > 0) return
    subscriptions.delete(key)
    if (subscriber) await settlesWithin(subscriber.unsubscribe(key), subscribeTimeoutMs)
  }

  return {
    publish: (channel, message, isOften) => {
      if (sender.status !== 'ready') return
      if (isOften && performance.now() < (unheardUntil.get(channel) ?? 0)) return
      sender
        .publish(prefix + channel, message)
        .then((listeners) => unheardUntil.set(channel, listeners === 0 ? performance.now() + unheardMs : 0))
        .catch(() => {})
    },
    subscribe: async (channel, handler) => {
      const key = prefix + channel
      const listener = guardHandler(handler, log)
      const subscription = subscriptionTo(key)
      subscription.listeners.add(listener)
      await settlesWithin(subscription.ready, subscribeTimeoutMs)
      return () => leave(key, listener)
    },
    close: async () => {
      subscriptions.clear()
      await settlesWithin(sender.quit(), 500)
      redis.disconnectRedis(sender)
      if (subscriber) redis.disconnectRedis(subscriber)
    },
  }
}
