import { Message } from '@a2a-js/sdk'

/** A part of a message or an artifact. */
export type Part = { text: string } | { data: object }

/** What becomes of a message: the state of its task as A2A 0.3 writes it, what the agent says, and the parts of each artifact. */
export type Answer = {
  state: 'completed' | 'failed' | 'rejected' | 'input-required'
  says?: Part[]
  artifacts?: Part[][]
}

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

/** A message as an agent reads it: by data keys, wherever its parts have them. */
export type Incoming = {
  messageId: string
  taskId: string
  contextId: string
  text: string
  keys: string[]
  /** All values of a key, in order. */
  all(key: string): unknown[]
  get(key: string): unknown
  /** The value, where it is a text that is not empty. */
  textOf(key: string): string | undefined
}

/** Reads a message of a task. */
export const readMessage = (json: object): Incoming => {
  const { messageId, taskId, contextId, parts } = Message.fromJSON(json)
  const values = parts.flatMap(({ content }) =>
    content?.$case === 'data' && typeof content.value === 'object' ? Object.entries(content.value ?? {}) : [],
  )
  const all = (key: string): unknown[] =>
    values.flatMap(([name, value]) => (name === key && value != null ? [value] : []))
  return {
    ...{ messageId, taskId, contextId, all, get: (key) => all(key)[0] },
    text: parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : [])).join('\n'),
    keys: [...new Set(values.map(([name]) => name))],
    textOf(key) {
      const [value] = all(key)
      return typeof value === 'string' && value !== '' ? value : undefined
    },
  }
}
