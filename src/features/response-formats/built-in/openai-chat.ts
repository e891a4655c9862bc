import type { FormatPaths } from '../../../models/schemas/response-format.ts'
import { copyFields, defineFormat } from './format-declaration.ts'

/** Parts of request templates that OpenAI's chat protocol shares with vendors that follow it. */

const imageParts =
  "map(&(type == 'text' ? {type: 'text', text: text} : " +
  "{type: 'image_url', image_url: compact({url: url, detail: detail})}), parts)"

/** The calls of a message. */
export const chatCallsTemplate =
  "tool_calls[].{id: id, type: 'function', function: {name: name, arguments: arguments}}"

/** The content is a list of parts when it has images, else a text. */
const messages =
  `{{messages[].compact({role: role, content: parts[?type == 'image'] ? ${imageParts} : content, ` +
  `reasoning_content: reasoning, tool_calls: ${chatCallsTemplate}, tool_call_id: tool_call_id, prefix: prefix})}}`

/** For vendors that always need a text as content. `more`: further members of a message. */
const createTextMessagesTemplate = (more: string): string =>
  `{{messages[].compact({role: role, content: content || '', ${more}, tool_calls: ${chatCallsTemplate}, tool_call_id: tool_call_id, prefix: prefix})}}`

/** The tools of a request. */
export const chatToolsTemplate =
  "{{tools[].{type: 'function', function: {name: name, description: description, parameters: parameters}}}}"

/** For vendors that can hold the arguments to the schema. */
const strictToolsTemplate =
  "{{tools[].{type: 'function', function: compact({name: name, description: description, parameters: parameters, strict: strict})}}}"

/** The members that all these vendors take. */
const chatBody = {
  ...copyFields('model', 'temperature', 'top_p', 'stream'),
  messages,
  tools: chatToolsTemplate,
}

/** For vendors that support JSON responses without a schema; the system message describes the schema. */
const jsonObjectTemplate = "{{json ? {type: 'json_object'} : response_format}}"

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

/** Shared by vendors that add fields to this shape. The `text` of a choice is that of servers that know completions alone. */
const completionPaths = {
  text: "choices[0].message.refusal || choices[0].message.content || choices[0].text || (choices[0].message || choices[0].text) && ''",
  reasoning: reasoningAt('choices[0].message'),
  tool_calls: 'choices[0].message.tool_calls[].{id: id, name: function.name, arguments: function.arguments}',
  finish: 'choices[0].finish_reason',
  model: 'model',
  error: 'error || choices[0].error',
  usage,
} satisfies FormatPaths
/** The same paths over an event of a stream. */
const chunkPaths = {
  ...completionPaths,
  text: "choices[0].delta.refusal || choices[0].delta.content || choices[0].text || choices[0].finish_reason && ''",
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

const deepseekUsage: FormatPaths['usage'] = {
  ...completionPaths.usage,
  cached_tokens: 'usage.prompt_cache_hit_tokens || usage.prompt_tokens_details.cached_tokens',
}

/**
 * DeepSeek's chat completions: OpenAI's shape with `reasoning_content` and its own cache counts. Source: DeepSeek's API
 * reference; the names of the counts were checked against a public client (docs.rs, deepseek-sdk 0.3.0, chat/response.rs).
 */
export const deepseekChat = defineFormat({
  name: 'deepseek-chat',
  /** Under https://api.deepseek.com. Source: DeepSeek's API reference, "Create Chat Completion". */
  post: '/chat/completions',
  body: {
    ...chatBody,
    tools: strictToolsTemplate,
    ...copyFields('max_tokens', 'stop', 'presence_penalty', 'frequency_penalty'),
    // calls need the reasoning before them, even an empty one: the thinking mode refuses them without it (400)
    messages: createTextMessagesTemplate("reasoning_content: tool_calls && (reasoning || '')"),
    tool_choice: '{{tools && tool_choice}}',
    response_format: jsonObjectTemplate,
    thinking: '{{parameters.thinking}}',
    stream_options: '{{stream ? {include_usage: stream} : `null`}}',
  },
  paths: { ...completionPaths, usage: deepseekUsage },
  stream: { format: 'sse', done: '[DONE]', paths: { ...chunkPaths, usage: deepseekUsage } },
})

/** Zhipu's chat completions: OpenAI's shape with `reasoning_content`, and its own finish reasons. Source: Zhipu's API reference, GLM. */
export const zhipuChat = defineFormat({
  name: 'zhipu-chat',
  /** Under https://open.bigmodel.cn/api/paas/v4; it knows no choice of tools but auto. Source: Zhipu's API reference, "chat completions". */
  post: '/chat/completions',
  body: {
    ...chatBody,
    ...copyFields('max_tokens'),
    tool_choice: "{{tools && tool_choice ? 'auto' : `null`}}",
    response_format: jsonObjectTemplate,
    thinking: '{{parameters.thinking}}',
    stop: '{{stop ? to_array(stop) : `null`}}',
    user_id: '{{user}}',
  },
  paths: completionPaths,
  stream: { format: 'sse', done: '[DONE]', paths: chunkPaths },
})
