import type { FastifyReply } from 'fastify'
import { startStream } from '../sse.ts'
import type { Chunks } from './chat-answer.ts'
import type { Answered } from './service.ts'

type Delta = { text: string; reasoning: string }

export type ChatStream = {
  /** Whether anything went out: from then on a fault can only end the stream. */
  readonly started: boolean
  say(delta: Delta): void
  end(answered: Answered): void
  /** Ends the stream with an error, so that no client takes what came for the whole answer. */
  fail(body: unknown): void
  /** Stops keeping the connection open; called in any case. */
  release(): void
}

/**
 * The answer as it comes. Headers go out with the first token, so that a fault before it has a status of its own, or with
 * the first comment that keeps proxies waiting. What a slow client does not take is put together to one chunk, so that it
 * costs no more memory than the answer itself.
 */
export const openChatStream = (reply: FastifyReply, chunks: Chunks, keepAliveMs: number): ChatStream => {
  let started = false
  let spoke = false
  let text = ''
  let reasoning = ''

  /** Frames of the same turn of the event loop go out by one write: an answer that came at once goes out at once. */
  let frames = ''
  const send = (): void => {
    if (frames !== '' && !reply.raw.destroyed) reply.raw.write(frames)
    frames = ''
  }
  const write = (frame: string): void => {
    if (!started) {
      started = true
      startStream(reply).on('drain', flush)
    }
    if (frames === '') setImmediate(send)
    frames += frame
  }
  const end = (): void => {
    const last = frames
    frames = ''
    reply.raw.end(last)
  }
  const flush = (): void => {
    if (text === '' && reasoning === '') return
    const delta = {
      ...(!spoke && { role: 'assistant' }),
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      ...(text !== '' && { content: text }),
    }
    spoke = true
    text = ''
    reasoning = ''
    write(chunks.delta(delta))
  }
  const timer = setInterval(() => {
    if (!reply.raw.writableNeedDrain) write(': keep-alive\n\n')
  }, keepAliveMs)

  return {
    get started() {
      return started
    },
    say(delta) {
      text += delta.text
      reasoning += delta.reasoning
      if (!reply.raw.writableNeedDrain) flush()
    },
    end(answered) {
      flush()
      const role = spoke
        ? ''
        : chunks.delta({ role: 'assistant', content: answered.result.tool_calls.length > 0 ? null : '' })
      write(role + chunks.rest(answered))
      end()
    },
    fail(body) {
      flush()
      write(`data: ${JSON.stringify(body)}\n\n`)
      end()
    },
    release: () => clearInterval(timer),
  }
}
