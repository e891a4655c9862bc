import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { type RunRequest, submitRun } from 'mason-runtime'
import { answersIn, type MasonServer } from './answers.ts'

/** A chat mini-app: messages come in as JSON lines and are put straight into the queue; replies go out the same way. */

export type ChatMessage = { msg_id: string; room: string; from: string; text: string }
export type ChatReply = { reply_to: string; room: string; text: string }

/** The chat's own message as the one standard shape: a person in a room is a session. */
export const toRunRequest = ({ msg_id, room, from, text }: ChatMessage): RunRequest => ({
  prompt: text,
  user_id: from,
  session_id: sessionOf({ room, from }),
  metadata: { product: 'chat', msg_id },
})

const sessionOf = ({ room, from }: Pick<ChatMessage, 'room' | 'from'>): string => `chat-${room}-${from}`

/** The message id makes a message that is delivered twice one run. No HTTP: this works while the API is down. */
export const send = async (message: ChatMessage, redisUrl?: string): Promise<void> => {
  await submitRun(toRunRequest(message), { id: `chat-${message.msg_id}`, ...(redisUrl && { redisUrl }) })
}

/**
 * The reply to a message, once its run has ended. The session exists when a worker has taken the job from the queue,
 * so the first look may come too early.
 */
export const replyTo = async (
  mason: MasonServer,
  message: ChatMessage,
  signal: AbortSignal,
): Promise<ChatReply> => {
  for (;;) {
    try {
      for await (const { text, metadata } of answersIn(mason, sessionOf(message), signal))
        if (metadata.msg_id === message.msg_id) return { reply_to: message.msg_id, room: message.room, text }
    } catch (error) {
      if (signal.aborted) throw error
    }
    await sleep(200, undefined, { signal })
  }
}

if (process.argv[1] === import.meta.filename) {
  const { MASON_URL: url = 'http://127.0.0.1:8080', MASON_TOKEN: token } = process.env
  for await (const line of createInterface({ input: process.stdin }))
    try {
      const message = JSON.parse(line) as ChatMessage
      await send(message)
      console.log(JSON.stringify(await replyTo({ url, token }, message, AbortSignal.timeout(60_000))))
    } catch (error) {
      const { message, remedy } = error as Error & { remedy?: string }
      console.error(`no reply: ${remedy ? `${message}; ${remedy}` : message}`)
      process.exitCode = 1
    }
}
