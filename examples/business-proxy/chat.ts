import { createInterface } from 'node:readline'
import type { RunRequest } from 'mason-runtime'
import { type Client, createClient } from 'mason-runtime/client'
import { createProducer, type Producer } from 'mason-runtime/queue'

/** A chat mini-app: messages come in as JSON lines and are put straight into the queue; replies go out the same way. */

export type ChatMessage = { msg_id: string; room: string; from: string; text: string }
export type ChatReply = { reply_to: string; room: string; text: string }

/** The chat's own message as the one standard shape: a person in a room is a session. */
export const toRunRequest = ({ msg_id, room, from, text }: ChatMessage): RunRequest => ({
  prompt: text,
  user_id: from,
  session_id: `chat-${room}-${from}`,
  metadata: { product: 'chat', msg_id },
})

/** The reply to a message, once its run has ended. The message id makes a message that is delivered twice one run. */
export const replyTo = async (
  producer: Producer,
  mason: Client,
  message: ChatMessage,
  signal: AbortSignal,
): Promise<ChatReply> => {
  const job = await producer.submit(toRunRequest(message), { id: `chat-${message.msg_id}`, signal })
  const outcome = await producer.outcome(job, { signal })
  if ('errors' in outcome) throw new Error(outcome.errors.map(({ detail }) => detail).join('; '))
  const { status, answer, error } = await mason.wait(outcome.run_id, { signal })
  const text = answer ?? error?.message ?? `The run was ${status}.`
  return { reply_to: message.msg_id, room: message.room, text }
}

if (process.argv[1] === import.meta.filename) {
  const { MASON_URL: url = 'http://127.0.0.1:8080', MASON_TOKEN: token } = process.env
  const mason = createClient({ url, token })
  // REDIS_URL, MASON_QUEUE_PREFIX and MASON_QUEUE_SECRET are those of Mason
  const producer = await createProducer({ http: { url, token } })
  for await (const line of createInterface({ input: process.stdin }))
    try {
      const message = JSON.parse(line) as ChatMessage
      console.log(JSON.stringify(await replyTo(producer, mason, message, AbortSignal.timeout(60_000))))
    } catch (error) {
      const { message, remedy } = error as Error & { remedy?: string }
      console.error(`no reply: ${remedy ? `${message}; ${remedy}` : message}`)
      process.exitCode = 1
    }
  await producer.close()
}
