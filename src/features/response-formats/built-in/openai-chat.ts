import type { FormatPaths } from '../../../models/schemas/response-format.ts'
import { copyFields, defineFormat } from './format-declaration.ts'

/** Parts of request templates that OpenAI's chat protocol shares with vendors that follow it. */

const imageParts =
  "map(&(type == 'text' ? {type: 'text', text: text} : " +
  "{type: 'image_url', image_url: compact({url: url, detail: detail})}), parts)"

const calls = "tool_calls[].{id: id, type: 'function', function: {name: name, arguments: arguments}}"

/** The content is a list of parts when it has images, else a text. */
const messages =
  `{{messages[].compact({role: role, content: parts[?type == 'image'] ? ${imageParts} : content, ` +
  `reasoning_content: reasoning, tool_calls: ${calls}, tool_call_id: tool_call_id, prefix: prefix})}}`

/** For vendors that always need a text as content. `more`: further members of a message. */
export const createTextMessagesTemplate = (more: string): string =>
  `{{messages[].compact({role: role, content: content || '', ${more}, tool_calls: ${calls}, tool_call_id: tool_call_id, prefix: prefix})}}`

/** The tools of a request. */
export const chatToolsTemplate =
  "{{tools[].{type: 'function', function: {name: name, description: description, parameters: parameters}}}}"

/** For vendors that can hold the arguments to the schema. */
export const strictToolsTemplate =
  "{{tools[].{type: 'function', function: compact({name: name, description: description, parameters: parameters, strict: strict})}}}"

/** The members that all these vendors take. */
export const chatBody = {
  ...copyFields('model', 'temperature', 'top_p', 'stream'),
  messages,
  tools: chatToolsTemplate,
}

/** For vendors that support JSON responses without a schema; the system message describes the schema. */
export const jsonObjectTemplate = "{{json ? {type: 'json_object'} : response_format}}"

/** For vendors that accept a JSON Schema of the response. */
export const jsonSchemaTemplate =
  "{{schema ? {type: 'json_schema', json_schema: {name: role, schema: schema, strict: is_strict(schema)}} : " +
  'response_format}}'

/** Moonshot counts in the choice, and has a name of its own for cached tokens. */
const counted = '(usage || choices[0].usage)'
const usage: FormatPaths['usage'] = {
  prompt_tokens: `${counted}.prompt_tokens`,
  completion_tokens: `${counted}.completion_tokens`,
  total_tokens: `${counted}.total_tokens`,
  cached_tokens: `${counted}.[prompt_tokens_details.cached_tokens, cached_tokens] | [0] || [1]`,
  reasoning_tokens: `${counted}.completion_tokens_details.reasoning_tokens`,
}

/** The second is the name of OpenRouter and newer vLLM, the third is Mistral's. */
const reasoningAt = (message: string): string =>
  `${message}.reasoning_content || ${message}.reasoning || ` +
  `${message}.content[?type=='thinking'].thinking[].text`

/** Shared by vendors that add fields to this shape. */
export const completionPaths = {
  text: 'choices[0].message.refusal || choices[0].message.content',
  reasoning: reasoningAt('choices[0].message'),
  tool_calls: 'choices[0].message.tool_calls[].{id: id, name: function.name, arguments: function.arguments}',
  finish: 'choices[0].finish_reason',
  model: 'model',
  error: 'error',
  usage,
} satisfies FormatPaths
/** The same paths over an event of a stream. */
export const chunkPaths = {
  ...completionPaths,
  text: 'choices[0].delta.refusal || choices[0].delta.content',
  reasoning: reasoningAt('choices[0].delta'),
  tool_calls:
    'choices[0].delta.tool_calls[].{index: index, id: id, name: function.name, arguments: function.arguments}',
} satisfies FormatPaths

/** Chat completions as OpenAI and most others send them. Source: OpenAI's API reference, "Chat Completions". */
export const openaiChat = defineFormat({
  name: 'openai-chat',
  /** Under …/v1. Source: OpenAI's API reference, "Create chat completion". */
  post: '/chat/completions',
  body: {
    ...chatBody,
    tools: strictToolsTemplate,
    ...copyFields('stop', 'seed', 'presence_penalty', 'frequency_penalty', 'reasoning_effort', 'user'),
    tool_choice: '{{tools && tool_choice}}',
    parallel_tool_calls: '{{tools && parallel_tool_calls}}',
    response_format: jsonSchemaTemplate,
    max_tokens: '{{parameters.max_tokens}}',
    max_completion_tokens: '{{parameters.max_completion_tokens}}',
    stream_options: '{{stream ? {include_usage: stream} : `null`}}',
  },
  paths: completionPaths,
  stream: { format: 'sse', done: '[DONE]', paths: chunkPaths },
})
