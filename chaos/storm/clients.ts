import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { scriptFlags } from '../../test/support/script-flags.ts'
import type { ClientsReply, ClientsTask } from './clients-process.ts'
import type { Followed } from './reader.ts'

export type Clients = AsyncDisposable & { follow(task: ClientsTask): Promise<Followed[]> }

/** Processes that share the clients among them. */
export const openClients = (processes: number): Clients => {
  const script = fileURLToPath(new URL('./clients-process.ts', import.meta.url))
  const children = Array.from({ length: processes }, () => fork(script, { execArgv: scriptFlags() }))

  const ask = async (child: ChildProcess, task: ClientsTask): Promise<Followed[]> => {
    const gone = once(child, 'exit').then(([code]) => {
      throw new Error(`a process of clients ended with ${code}`)
    })
    const report = new Promise<Followed[]>((resolve) => {
      const take = (reply: Partial<ClientsReply>): void => {
        // other messages are tsx's own
        if (!reply.followed) return
        child.off('message', take)
        resolve(reply.followed)
      }
      child.on('message', take)
    })
    child.send(task)
    return Promise.race([report, gone])
  }

  return {
    async follow({ tasks, ...rest }) {
      const shares = children.map((_, at) => tasks.filter((_, index) => index % children.length === at))
      const all = await Promise.all(
        children.map((child, at) => ask(child, { ...rest, tasks: shares[at] ?? [] })),
      )
      return all.flat()
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(
        children.map(async (child) => {
          if (child.exitCode !== null || child.signalCode !== null) return
          const gone = once(child, 'exit')
          child.kill('SIGKILL')
          await gone
        }),
      )
    },
  }
}
