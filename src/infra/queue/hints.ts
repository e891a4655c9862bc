import { EventEmitter } from 'node:events'
import type { Redis } from 'ioredis'
import type { Log } from '../../state/ports.ts'
import { settlesWithin } from './deadline.ts'

/** Best effort news between processes: whoever depends on one must also look for himself now and then. */
export type Hints = {
  /** Sends and forgets; dropped when nobody listens or the server is down. Handlers run later, never inside this call. */
  publish(channel: string, message: string): void
  /** Resolves once hints arrive, or after a second with the server down (it subscribes when it is back). The result unsubscribes. */
  subscribe(channel: string, handler: (message: string) => void): Promise<() => Promise<void>>
  close(): Promise<void>
}

export type HintOptions = { log: Log } & (
  | {
      kind: 'redis'
      url: string
      /** Of the channels. Default `mason`. */
      prefix?: string
    }
  | { kind: 'embedded' }
)

export async function openHints(options: HintOptions): Promise<Hints> {
  switch (options.kind) {
    case 'redis': {
      const redis = await import('./redis.ts')
      return redisHints(redis, options.url, `${options.prefix ?? 'mason'}:hint:`, options.log)
    }
    case 'embedded':
      return embeddedHints(options.log)
    default:
      throw options satisfies never
  }
}

const waitMs = 1_000

/** A handler that throws is its own business and no other's. */
const guarded = (handler: (message: string) => void, log: Log) => (message: string) => {
  try {
    handler(message)
  } catch (error) {
    log.error({ error }, 'hints: a handler failed')
  }
}

function embeddedHints(log: Log): Hints {
  const bus = new EventEmitter().setMaxListeners(0)
  return {
    publish: (channel, message) => {
      setImmediate(() => bus.emit(`hint:${channel}`, message))
    },
    subscribe: async (channel, handler) => {
      const listener = guarded(handler, log)
      bus.on(`hint:${channel}`, listener)
      return async () => {
        bus.off(`hint:${channel}`, listener)
      }
    },
    close: async () => {
      bus.removeAllListeners()
    },
  }
}

type Subscription = { listeners: Set<(message: string) => void>; ready: Promise<unknown> }

function redisHints(redis: typeof import('./redis.ts'), url: string, prefix: string, log: Log): Hints {
  const sender = redis.connectSender(url)
  const subscriptions = new Map<string, Subscription>()
  let subscriber: Redis | undefined

  const openSubscriber = () => {
    const connection = redis.connectSubscriber(url)
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
    if (subscriber) await settlesWithin(subscriber.unsubscribe(key), waitMs)
  }

  return {
    publish: (channel, message) => {
      if (sender.status === 'ready') sender.publish(prefix + channel, message).catch(() => {})
    },
    subscribe: async (channel, handler) => {
      const key = prefix + channel
      const listener = guarded(handler, log)
      const subscription = subscriptionTo(key)
      subscription.listeners.add(listener)
      await settlesWithin(subscription.ready, waitMs)
      return () => leave(key, listener)
    },
    close: async () => {
      subscriptions.clear()
      await settlesWithin(sender.quit(), 500)
      redis.disconnect(sender)
      if (subscriber) redis.disconnect(subscriber)
    },
  }
}
