import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { type Random, randomFrom } from '../fleet/random.ts'
import { createFrames } from './frames.ts'
import { createReader, type Followed, type FollowTask, type Reader } from './reader.ts'

/**
 * Ways to lose a connection: in the middle of an event, right after one, a moment later, before the answer came, by
 * ending our half of it.
 */
const kinds = ['middle', 'after', 'later', 'early', 'half'] as const
type Drop = { at: number; kind: (typeof kinds)[number]; ms: number }

/** When each connection is lost, in actions seen so far. */
const planDrops = ({ drops, actions }: FollowTask, random: Random): Drop[] =>
  Array.from({ length: drops }, () => ({
    at: random.below(actions),
    kind: random.pick(kinds),
    ms: random.below(150),
  })).sort((a, b) => a.at - b.at)

/** How long a stream may stay open after we or the server ended it. */
const lingerMs = 20_000

/** Follows a stream to its end over as many connections as it takes; what the server gave twice or never is counted. */
export const follow = async (base: string, task: FollowTask, signal: AbortSignal): Promise<Followed> => {
  const random = randomFrom(task.seed)
  const plan = planDrops(task, random)
  const reader = createReader(task)
  const { seen } = reader
  await pause(random.below(1000), undefined, { signal })
  while ((!seen.done || seen.drops < task.drops) && !signal.aborted) {
    const drop = plan[seen.drops]
    seen.connections++
    const ended = await connectOnce(
      base,
      task.path,
      reader,
      drop && seen.done ? { ...drop, kind: 'after', at: 0 } : drop,
      signal,
    )
    if (ended === 'dropped') seen.drops++
    else if (ended !== 'whole') await pause(50)
    if (ended === 'broken' && !signal.aborted)
      seen.faults.push(`a stream ended by itself after action ${reader.last()}`)
  }
  return reader.result()
}

type Ended = 'dropped' | 'whole' | 'broken' | 'refused'

/** One connection, to its end or its drop. */
const connectOnce = (
  base: string,
  path: string,
  reader: Reader,
  drop: Drop | undefined,
  signal: AbortSignal,
): Promise<Ended> =>
  new Promise((resolve) => {
    const headers = reader.last() > 0 ? { 'last-event-id': String(reader.last()) } : {}
    const sent: ClientRequest = request(base + path, { agent: false, headers })
    const isSession = path.startsWith('/v1/sessions/')
    let outcome: Ended | null = null
    let linger: NodeJS.Timeout | undefined
    let later: NodeJS.Timeout | undefined
    const finish = (ended: Ended): void => {
      if (outcome) return
      outcome = ended
      clearTimeout(linger)
      clearTimeout(later)
      signal.removeEventListener('abort', giveUp)
      sent.destroy()
      resolve(ended)
    }
    const giveUp = (): void => finish('broken')
    signal.addEventListener('abort', giveUp, { once: true })
    const isDue = (kind: Drop['kind']): boolean =>
      drop !== undefined && drop.kind === kind && reader.count() >= drop.at
    const expectClose = (what: string, ended: Ended): void => {
      linger ??= setTimeout(() => {
        reader.fault(`${what} was not closed within ${lingerMs} ms`)
        finish(ended)
      }, lingerMs)
    }

    const read = (response: IncomingMessage): void => {
      if (response.statusCode !== 200) {
        reader.refuse(response.statusCode ?? 0)
        response.resume()
        finish('refused')
        return
      }
      const frames = createFrames()
      let halfClosed = false
      response.on('data', (chunk: Buffer) => {
        if (outcome) return
        const middle = isDue('middle')
        for (const frame of frames(middle ? chunk.subarray(0, Math.ceil(chunk.length / 2)) : chunk)) {
          reader.take(frame)
          if (isDue('after')) return finish('dropped')
          if (isDue('later')) later ??= setTimeout(() => finish('dropped'), drop?.ms)
          if (isDue('half') && !halfClosed) {
            halfClosed = true
            sent.socket?.end()
            expectClose('a connection we half closed', 'dropped')
          }
        }
        if (middle) return finish('dropped')
        if (reader.isOver() && !halfClosed) {
          if (isSession) return finish(drop ? 'dropped' : 'whole')
          expectClose('the stream of an ended run', 'whole')
        }
      })
      const over = (): void => finish(halfClosed ? 'dropped' : reader.isOver() ? 'whole' : 'broken')
      response.once('end', over).once('close', over).once('error', over)
    }
    sent.once('response', read)
    sent.once('error', (error: NodeJS.ErrnoException) => {
      if (!outcome) reader.fault(`the connection failed: ${error.code ?? error.message}`)
      finish('refused')
    })
    if (isDue('early')) sent.once('socket', () => setTimeout(() => finish('dropped'), (drop?.ms ?? 0) / 10))
    sent.end()
  })
