import { readReply } from '../../dialogue/reply.ts'
import { type DialoguePart, writeDialogue } from '../../dialogue/write.ts'
import type { ModelMessage } from '../../state/ports/model-messages.ts'
import { tryParseJson } from '../../state/text/json-size.ts'
import type { OfflineReply, OfflineRequest } from './request.ts'

/** The same decisions, written in the language of the dialogue. */

const callForm = /<([\w.-]+)><([\w.-]+)>/g
const resultOpening = /^<result index="(\d+)">/
const resultEnd = '</result>'

/** Calls that have no result and no place among the steps. */
const controls: readonly string[] = ['update_todos', 'finish']

/** The server of each tool that the instructions name as `<server><tool>`. */
const findServers = ({ messages }: OfflineRequest): Map<string, string> => {
  const instructions = messages.filter(({ role }) => role === 'system').map(({ content }) => content)
  return new Map(
    [...instructions.join('\n').matchAll(callForm)].map(([, server = '', tool = '']) => [tool, server]),
  )
}

/** The calls that were written, and what was put back, as those of native calls. */
const toNativeMessages = (messages: readonly ModelMessage<string>[]): ModelMessage<string>[] => {
  let ids: readonly string[] = []
  return messages.flatMap((message, at): ModelMessage<string>[] => {
    if (message.role === 'user')
      return message.content.split(resultEnd).flatMap((part) => {
        const text = part.trimStart()
        const [opening = '', index] = resultOpening.exec(text) ?? []
        const id = ids[Number(index)]
        return id === undefined
          ? []
          : [{ role: 'tool', tool_call_id: id, content: text.slice(opening.length) }]
      })
    if (message.role !== 'assistant') return []
    const calls = readReply(message.content).blocks.at(-1)?.calls ?? []
    const tool_calls = calls
      .filter(({ tool }) => !controls.includes(tool))
      .map(({ tool, body }, index) => ({ id: `${at}_${index}`, name: tool, arguments: toPlainJson(body) }))
    ids = tool_calls.map(({ id }) => id)
    return [{ ...message, tool_calls }]
  })
}

/** JSON as it was before it was written into a call. */
const toPlainJson = (body: string): string => {
  const json = tryParseJson(body)
  return json === undefined ? body : JSON.stringify(json)
}

/** A request whose model is to write its calls, as one for native calls. */
export const toNativeRequest = (request: OfflineRequest): OfflineRequest => ({
  ...request,
  messages: toNativeMessages(request.messages),
  tools: [...findServers(request).keys()].map((name) => ({ name, description: '', parameters: {} })),
})

/** A reply with its calls written out; what is said is the thought before calls of tools, else the answer. */
export const writeReply = ({ text, tool_calls }: OfflineReply, request: OfflineRequest): OfflineReply => {
  const servers = findServers(request)
  const calls = tool_calls.map(({ name, arguments: body }) => ({
    server: servers.get(name) ?? '',
    tool: name,
    body: body.replaceAll('</', '<\\/'),
  }))
  const isDone = calls.every(({ tool }) => controls.includes(tool))
  const parts: DialoguePart[] = [{ kind: isDone ? 'answer' : 'think', text }]
  if (calls.length > 0) parts.push({ kind: 'calls', block: 'parallel', calls })
  return { text: writeDialogue(parts), tool_calls: [] }
}
