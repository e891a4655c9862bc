import { Redis } from 'ioredis'
import { openHints } from '../../src/infra/queue/hints.ts'
import type { Case, Figures, Variant } from '../case.ts'
import type { Place } from '../support/place.ts'
import { latencies } from '../support/statistics.ts'

const channel = 'sessions'
const message = '{"tenant":"default","session_id":"ses_0123456789abcdef","kind":"action"}'
const log = { debug() {}, info() {}, warn() {}, error() {} }

type Listen = (handler: () => void) => Promise<unknown>

/** One message after the other for the latency, then all at once for the throughput. */
const measure = async (place: Place, publish: () => void, listen: Listen): Promise<Figures> => {
  let left = 0
  let arrived: () => void = () => {}
  await listen(() => {
    if (--left === 0) arrived()
  })
  const send = async (count: number): Promise<number> => {
    const all = new Promise<void>((resolve) => {
      arrived = resolve
    })
    left = count
    const since = performance.now()
    for (let n = 0; n < count; n++) publish()
    await all
    return performance.now() - since
  }
  await send(place.count(2000))
  const ms: number[] = []
  for (let n = 0; n < place.count(3000); n++) ms.push(await send(1))
  const count = place.count(50_000)
  return { ...latencies(ms), 'messages/s': (count / (await send(count))) * 1000 }
}

const ours: Variant = async (place) => {
  const hints = await openHints({ kind: 'redis', url: place.redisUrl, prefix: place.config.queuePrefix, log })
  const found = await measure(
    place,
    () => hints.publish(channel, message),
    (handler) => hints.subscribe(channel, handler),
  )
  await hints.close()
  return found
}

const raw: Variant = async (place) => {
  const key = `${place.config.queuePrefix}:raw`
  const sender = new Redis(place.redisUrl)
  const subscriber = new Redis(place.redisUrl)
  const found = await measure(
    place,
    () => void sender.publish(key, message),
    async (handler) => {
      subscriber.on('message', handler)
      await subscriber.subscribe(key)
    },
  )
  await Promise.all([sender.quit(), subscriber.quit()])
  return found
}

const hintsCase: Case = {
  about: 'hints from sender to receiver in one process, against bare Redis pub/sub',
  ours: { Mason: ours },
  beside: { 'raw pub/sub': raw },
}

export default hintsCase
