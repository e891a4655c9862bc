import { Message } from '@a2a-js/sdk'
import type { Books } from './books.ts'
import type { Self } from './config.ts'
import type { CallPeer } from './peers.ts'

/** A part of a message or an artifact. */
export type Part = { text: string } | { data: object }

/** What becomes of a message: the state of its task as A2A 0.3 writes it, what the agent says, and the parts of each artifact. */
export type Answer = {
  state: 'completed' | 'failed' | 'rejected' | 'input-required'
  says?: Part[]
  artifacts?: Part[][]
}
/** What a program needs to be an agent: it carries out a message, also again after a kill, or throws a `RefusalError`. */
export type Handle = (message: Incoming) => Promise<Answer>
/** What an agent is made of. */
export type Tools = { self: Self; books: Books; call: CallPeer }

/** Why an agent does not do what a message asks for: nothing was done, and no money was taken. `artifacts` are receipts of that. */
export class RefusalError extends Error {
  readonly state: 'failed' | 'rejected'
  artifacts: Part[][] = []
  constructor(text: string, state: 'failed' | 'rejected') {
    super(text)
    this.state = state
  }
}

/** Ends a message as the samples of AP2 0.1 do, with their words. */
export const fail = (text: string): never => {
  throw new RefusalError(text, 'failed')
}
/** Ends a message with words of our own. */
export const refuse = (text: string): never => {
  throw new RefusalError(text, 'rejected')
}
/** Ends a message that was carried out, with an artifact. */
export const complete = (...parts: Part[]): Answer => ({
  state: 'completed',
  artifacts: parts.length > 0 ? [parts] : [],
})

/** Reads a message of a task, by data keys, wherever its parts have them. */
export const readMessage = (json: object) => {
  const { messageId, taskId, contextId, parts } = Message.fromJSON(json)
  const values = parts.flatMap(({ content }) =>
    content?.$case === 'data' && typeof content.value === 'object' ? Object.entries(content.value ?? {}) : [],
  )
  const text = parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : [])).join('\n')
  const keys = [...new Set(values.map(([name]) => name))]
  /** All values of a key, in order. */
  const all = (key: string): unknown[] =>
    values.flatMap(([name, value]) => (name === key && value != null ? [value] : []))
  const get = (key: string): unknown => all(key)[0]
  return {
    ...{ messageId, taskId, contextId, text, keys, all, get },
    has: (...names: string[]): boolean => names.some((name) => keys.includes(name)),
    /** The value, where it is a text that is not empty. */
    textOf(key: string): string | undefined {
      const value = get(key)
      return typeof value === 'string' && value !== '' ? value : undefined
    },
  }
}
/** A message as an agent reads it. */
export type Incoming = ReturnType<typeof readMessage>

/** The text of the merchant to the processor, by which the samples of AP2 route. */
export const processText = 'initiate_payment'
