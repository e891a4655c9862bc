import { createHash } from 'node:crypto'
import type { Json } from '../../../state/runtime-state.ts'
import { askOf } from '../openai/ask.ts'
import type { ContentPart, ModelAsk, ModelEntry } from '../ports.ts'

/**
 * What request templates see: one shape for all vendors, with nothing of the key or the endpoint in it.
 * A message is `{role, content, parts}`: `content` is its text (null where there are only calls), `parts` a list of
 * `{type: text, text}` and `{type: image, url, detail}`, with `base64` and `mime_type` where the address is a data:
 * one. Those of the assistant have `tool_calls: [{id, name, arguments}]` or null, `arguments` always being the JSON
 * text of an object, and `reasoning`, what a model of this vendor thought before these calls, or null; those of tools have `tool_call_id` and `name`.
 */

/** Sampling and the like, under their own names beside `parameters`; any other one is `parameters.<name>`. */
const parameterNames = (
  'temperature top_p top_k max_tokens stop seed n tool_choice parallel_tool_calls presence_penalty ' +
  'frequency_penalty logit_bias logprobs top_logprobs user reasoning_effort size quality style background ' +
  'response_format dimensions encoding_format input_type top_n seconds duration aspect_ratio negative_prompt ' +
  'image voice'
).split(' ')

const ownNames = [
  'model',
  'messages',
  'system',
  'tools',
  'schema',
  /** Whether the answer should be JSON, also where `schema` is asked for in words and so null here. */
  'json',
  'input',
  'query',
  'prompt',
  'parameters',
  'stream',
  'role',
  /** The most tokens that the model can answer with, as the registry says; or null. */
  'max_output',
]
export const knownFields: ReadonlySet<string> = new Set([...ownNames, ...parameterNames])

type SentMessage = ReturnType<typeof askOf>['messages'][number]

const partOf = (part: ContentPart): Json => {
  if (part.type === 'text') return { type: 'text', text: part.text }
  const { url, detail = null } = part.image_url
  const data = /^data:([^;,]*)(?:;[^;,]*)*;base64,/i.exec(url.slice(0, 300))
  const base64 = data === null ? null : url.slice(data[0].length)
  return { type: 'image', url, detail, base64, mime_type: data?.[1] || null }
}

/** Ids of calls as every vendor takes them back, so that what one vendor called can be shown to another. */
const callId = (id: string): string =>
  /^[\w-]{1,64}$/.test(id)
    ? id
    : `${id.replaceAll(/[^\w-]/g, '_').slice(0, 40)}_${createHash('sha256').update(id).digest('hex').slice(0, 12)}`

/** Empty texts are no part: some vendors refuse them. */
const contentOf = (
  content: string | null | readonly ContentPart[],
): { content: string | null; parts: Json[] } => {
  if (typeof content !== 'object' || content === null) {
    return { content, parts: content ? [{ type: 'text', text: content }] : [] }
  }
  const texts = content.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  const parts = content.filter((part) => part.type !== 'text' || part.text !== '')
  return { content: texts.join('\n'), parts: parts.map(partOf) }
}

/** Messages of tools also say which tool they are from: some vendors know results by name, not by id. */
const messagesOf = (sent: readonly SentMessage[]): Json[] => {
  const names = new Map<string, string>()
  return sent.map((message): Json => {
    const { role } = message
    const content = contentOf(message.content)
    if (message.role === 'tool') {
      const tool_call_id = callId(message.tool_call_id)
      return { role, ...content, tool_call_id, name: names.get(tool_call_id) ?? null }
    }
    if (message.role !== 'assistant' || !('tool_calls' in message)) return { role, ...content }
    const calls = (message.tool_calls ?? []).map(({ id, function: called }) => ({
      id: callId(id),
      ...called,
    }))
    for (const { id, name } of calls) names.set(id, name)
    const reasoning = message.reasoning_content ?? null
    return { role, ...content, reasoning, tool_calls: calls.length === 0 ? null : calls }
  })
}

const systemOf = (messages: readonly SentMessage[]): string | null => {
  const texts = messages.flatMap(({ role, content }) => (role === 'system' ? [content] : []))
  return texts.length === 0 ? null : texts.join('\n\n')
}

const orNull = <Item>(list: readonly Item[]): readonly Item[] | null => (list.length === 0 ? null : list)

/**
 * `inWords`: the answer's schema is asked for in the system message and not by itself. Lists that are empty are null,
 * so that their member of the body is left out.
 */
export const canonicalOf = (
  model: ModelEntry,
  ask: ModelAsk,
  { stream, inWords }: { stream: boolean; inWords: boolean },
): Record<string, unknown> => {
  const { parameters } = ask
  const { messages } = askOf(ask, inWords ? 'prompt' : 'json_schema')
  const named = parameterNames.map((name) => [name, parameters[name] ?? null] as const)
  return {
    ...Object.fromEntries(named),
    max_tokens: parameters.max_tokens ?? parameters.max_completion_tokens ?? null,
    max_output: model.max_output,
    model: model.upstream_name,
    // a name that stands in requests: OpenAI takes no other characters, and no more
    role: ask.role.replaceAll(/[^\w-]/g, '_').slice(0, 64),
    messages: messagesOf(messages),
    system: systemOf(messages),
    tools: orNull(ask.tools),
    schema: inWords ? null : ask.schema,
    json: ask.schema === null ? null : true,
    input: orNull(ask.input),
    query: ask.query,
    prompt: ask.prompt,
    parameters,
    stream,
  }
}
