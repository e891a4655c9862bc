import { type ChildProcess, fork } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { openDeadline } from '../src/state/deadline.ts'
import { scriptFlags } from '../test/support/script-flags.ts'

/** A process of a suite's own: its task is JSON, its reports are messages with an `event`. */
export type Child<Message extends { event: string }> = {
  pid: number
  messages: Message[]
  send(text: string): void
  /** The next message of this event. Rejects when the process ends first, or after `ms`. */
  next<Event extends Message['event']>(event: Event, ms?: number): Promise<Extract<Message, { event: Event }>>
  /** Resolves when it is gone, with what it wrote to stderr. */
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null; stderr: string }>
  signal(name: NodeJS.Signals): void
}

/** Starts a TypeScript file with `task` as its argument. `nodeOptions` go to node itself. */
export const startChild = <Message extends { event: string }>(
  script: string,
  task: unknown,
  nodeOptions: readonly string[] = [],
): Child<Message> => {
  const child = fork(script, [JSON.stringify(task)], {
    execArgv: [...scriptFlags(), ...nodeOptions],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const news = new EventEmitter().setMaxListeners(0)
  const messages: Message[] = []
  const gone = new AbortController()
  child.on('message', (message: Message) => {
    // tsx has messages of its own
    if (message.event === undefined) return
    messages.push(message)
    news.emit(message.event, message)
  })
  const ended = endOf(child)
  void ended.then((end) => gone.abort(new Error(`process ${child.pid} is gone: ${JSON.stringify(end)}`)))
  return {
    pid: child.pid ?? 0,
    messages,
    ended,
    send: (text) => void (child.connected && child.send(text, () => {})),
    signal: (name) => void child.kill(name),
    async next(event, ms = 60_000) {
      using deadline = openDeadline(ms, gone.signal)
      const { signal } = deadline
      signal.throwIfAborted()
      const [message] = await once(news, event, { signal }).catch(() => {
        throw signal.reason
      })
      return message
    },
  }
}

const endOf = async (child: ChildProcess): Promise<Awaited<Child<never>['ended']>> => {
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-5000)
  })
  const [code, signal] = await once(child, 'close')
  return { code, signal, stderr }
}
