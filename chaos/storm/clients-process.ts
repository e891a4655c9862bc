import { setMaxListeners } from 'node:events'
import { follow } from './follower.ts'
import type { Followed, FollowTask } from './reader.ts'

/** Many clients in a process of their own: each message is a batch to follow, answered once all have seen the end. */
export type ClientsTask = { url: string; tasks: FollowTask[]; withinMs: number }
export type ClientsReply = { followed: Followed[] }

process.on('message', async ({ url, tasks, withinMs }: ClientsTask) => {
  if (!tasks) return
  const signal = AbortSignal.timeout(withinMs)
  setMaxListeners(0, signal)
  const followed = await Promise.all(tasks.map((task) => follow(url, task, signal)))
  process.send?.({ followed } satisfies ClientsReply)
})
process.once('disconnect', () => process.exit(0))
