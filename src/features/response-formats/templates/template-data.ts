import { sha256 } from '../../../infra/lib/ids.ts'
import { toChatRequestBody } from '../../../models/chat/chat-request.ts'
import type { CanonicalRequest, ContentPart, ModelEntry } from '../../../models/ports/model-ports.ts'
import type { Json } from '../../../state/runtime-state.ts'

/**
 * The data of request templates: one shape for all vendors, without the key and the endpoint.
 * A message is `{role, content, parts}`: `content` is its text (null when it has calls only), `parts` a list of
 * `{type: text, text}` and `{type: image, url, detail}`, with `base64` and `mime_type` when the url is a data: url.
 * Messages of the assistant have `tool_calls: [{id, name, arguments}]` or null, with `arguments` as the JSON text of
 * an object, and `reasoning` of this vendor's model before these calls, or null. Messages of tools have
 * `tool_call_id` and `name`.
 */

/** Parameters that are fields of their own too; any other one is `parameters.<name>`. */
const parameterNames = (
  'temperature top_p top_k max_tokens stop seed n tool_choice parallel_tool_calls presence_penalty ' +
  'frequency_penalty logit_bias logprobs top_logprobs user reasoning_effort size quality style background ' +
  'response_format dimensions encoding_format input_type top_n seconds duration aspect_ratio negative_prompt ' +
  'image voice language speed instructions'
).split(' ')

const ownNames = [
  'model',
  'messages',
  'system',
  'tools',
  'schema',
  /** Whether the response should be JSON, also when the prompt describes the schema and `schema` is null. */
  'json',
  'input',
  'query',
  'prompt',
  /** `{base64, mime_type, name}` of the first file, and a list of all; or null. */
  'file',
  'files',
  'parameters',
  'stream',
  'role',
  /** The model's maximum of output tokens in the registry; or null. */
  'max_output',
]
/** The fields that templates may use. */
export const templateFields: ReadonlySet<string> = new Set([...ownNames, ...parameterNames])

type ChatRequestMessage = ReturnType<typeof toChatRequestBody>['messages'][number]

const toPart = (part: ContentPart): Json => {
  if (part.type === 'text') return { type: 'text', text: part.text }
  const { url, detail = null } = part.image_url
  const data = /^data:([^;,]*)(?:;[^;,]*)*;base64,/i.exec(url.slice(0, 300))
  const base64 = data === null ? null : url.slice(data[0].length)
  return { type: 'image', url, detail, base64, mime_type: data?.[1] || null }
}

/** Call ids that every vendor accepts, so that calls of one vendor can be sent to another. */
const toVendorCallId = (id: string): string =>
  /^[\w-]{1,64}$/.test(id) ? id : `${id.replaceAll(/[^\w-]/g, '_').slice(0, 40)}_${sha256(id).slice(0, 12)}`

/** Empty texts are left out: some vendors refuse them. */
const toContent = (
  content: string | null | readonly ContentPart[],
): { content: string | null; parts: Json[] } => {
  if (typeof content !== 'object' || content === null) {
    return { content, parts: content ? [{ type: 'text', text: content }] : [] }
  }
  const texts = content.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  const parts = content.filter((part) => part.type !== 'text' || part.text !== '')
  return { content: texts.join('\n'), parts: parts.map(toPart) }
}

/** Messages of tools also have the tool's name: some vendors match results by name, not by id. */
const toMessages = (requestMessages: readonly ChatRequestMessage[]): Json[] => {
  const names = new Map<string, string>()
  return requestMessages.map((message): Json => {
    const { role } = message
    const content = toContent(message.content)
    if (message.role === 'tool') {
      const tool_call_id = toVendorCallId(message.tool_call_id)
      return { role, ...content, tool_call_id, name: names.get(tool_call_id) ?? null }
    }
    if ('prefix' in message) return { role, ...content, prefix: true }
    if (message.role !== 'assistant' || !('tool_calls' in message)) return { role, ...content }
    const calls = (message.tool_calls ?? []).map(({ id, function: called }) => ({
      id: toVendorCallId(id),
      ...called,
    }))
    for (const { id, name } of calls) names.set(id, name)
    const reasoning = message.reasoning_content ?? null
    return { role, ...content, reasoning, tool_calls: calls.length === 0 ? null : calls }
  })
}

const joinSystemTexts = (messages: readonly ChatRequestMessage[]): string | null => {
  const texts = messages.flatMap(({ role, content }) => (role === 'system' ? [content] : []))
  return texts.length === 0 ? null : texts.join('\n\n')
}

const nullIfEmpty = <Item>(list: readonly Item[]): readonly Item[] | null => (list.length === 0 ? null : list)

/**
 * `schemaInPrompt`: the system message describes the response's schema, so `schema` is null. Empty lists are null, so
 * that their member of the body is left out.
 */
export const toTemplateData = (
  model: ModelEntry,
  request: CanonicalRequest,
  { stream, schemaInPrompt }: { stream: boolean; schemaInPrompt: boolean },
): Record<string, unknown> => {
  const { parameters } = request
  const { messages } = toChatRequestBody(request, schemaInPrompt ? 'prompt' : 'json_schema')
  const named = parameterNames.map((name) => [name, parameters[name] ?? null] as const)
  return {
    ...Object.fromEntries(named),
    max_tokens: parameters.max_tokens ?? parameters.max_completion_tokens ?? null,
    max_output: model.max_output,
    model: model.upstream_name,
    // part of requests: OpenAI allows only these characters and this length
    role: request.role.replaceAll(/[^\w-]/g, '_').slice(0, 64),
    messages: toMessages(messages),
    system: joinSystemTexts(messages),
    tools: nullIfEmpty(request.tools),
    schema: schemaInPrompt ? null : request.schema,
    json: request.schema === null ? null : true,
    input: nullIfEmpty(request.input),
    query: request.query,
    prompt: request.prompt,
    file: request.files?.[0] ?? null,
    files: nullIfEmpty(request.files ?? []),
    parameters,
    stream,
  }
}
