import { copyFields, defineFormat } from './format-declaration.ts'

/**
 * Source: Anthropic's API reference, "Messages", "Streaming messages" and "Compaction". Its input_tokens exclude tokens read
 * from or written to the cache, and its counts exclude those of a compaction. Blocks of the vendor's own tools are passed
 * over.
 */

/** `usage` is the path to the counts; null where they have none of these names. */
const added = (usage: string, ...names: string[]): string =>
  `[${usage}, ${usage}.iterations[?type=='compaction']][].[${names.join(', ')}][] | length(@) > \`0\` && sum(@)`
const promptTokens = (usage: string): string =>
  added(usage, 'input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens')

const usageAt = (usage: string) => ({
  prompt_tokens: promptTokens(usage),
  completion_tokens: added(usage, 'output_tokens'),
  cached_tokens: added(usage, 'cache_read_input_tokens'),
  reasoning_tokens: `${usage}.output_tokens_details.thinking_tokens`,
})

const parts =
  "map(&(type == 'text' ? {type: 'text', text: text} : {type: 'image', source: base64 ? " +
  "{type: 'base64', media_type: mime_type, data: base64} : {type: 'url', url: url}}), parts)"
const calls = "map(&{type: 'tool_use', id: id, name: name, input: from_json(arguments)}, tool_calls || `[]`)"
const result = "[{type: 'tool_result', tool_use_id: tool_call_id, content: content}]"

/** Turns must alternate, so all results of one turn are one message; no content may be empty. */
const messages =
  "{{join_neighbours(messages[?role != 'system'].{role: role == 'assistant' ? 'assistant' : 'user', " +
  `content: role == 'tool' ? ${result} : [${parts}, ${calls}][]} | [?content], 'role', 'content')}}`

const choice =
  "tool_choice == 'required' ? {type: 'any'} : tool_choice.function.name ? " +
  "{type: 'tool', name: tool_choice.function.name} : {type: tool_choice}"

/** Anthropic's Messages. */
export const anthropicMessages = defineFormat({
  name: 'anthropic-messages',
  /** Under https://api.anthropic.com/v1. Source: Anthropic's API reference, "Create a Message", and "Structured outputs". */
  post: '/messages',
  headers: { 'x-api-key': '{{key}}', 'anthropic-version': '2023-06-01' },
  body: {
    ...copyFields('model', 'system', 'temperature', 'top_p', 'top_k', 'stream'),
    max_tokens: '{{max_tokens || max_output || `4096`}}',
    messages,
    tools: '{{tools[].{name: name, description: description, input_schema: parameters}}}',
    tool_choice: `{{tools && tool_choice ? (${choice}) : \`null\`}}`,
    output_config: "{{schema ? {format: {type: 'json_schema', schema: schema}} : `null`}}",
    thinking: '{{parameters.thinking}}',
    stop_sequences: '{{stop ? to_array(stop) : `null`}}',
  },
  paths: {
    text: "content[?type=='text'].text",
    reasoning: "content[?type=='thinking'].thinking",
    tool_calls: "content[?type=='tool_use'].{id: id, name: name, arguments: input}",
    finish: 'stop_reason',
    model: 'model',
    error: "type=='error' && error",
    usage: usageAt('usage'),
  },
  stream: {
    format: 'sse',
    // some servers give no reason
    done: '{"type":"message_stop"}',
    paths: {
      text:
        "(delta.type=='text_delta' && delta || content_block.type=='text' && content_block).text || " +
        "message.content[?type=='text'].text",
      reasoning: 'delta.thinking || content_block.thinking',
      // a call's input comes in deltas, or whole: in its block, or in a message that starts with calls
      tool_calls:
        "type=='content_block_start' && {index: index, id: content_block.id, name: content_block.name, " +
        "arguments: content_block.input || '', skip: content_block.type!='tool_use'} || " +
        'delta.partial_json && {index: index, arguments: delta.partial_json} || ' +
        "message.content[?type=='tool_use'].{id: id, name: name, arguments: input}",
      finish: 'delta.stop_reason || message.content && message.stop_reason',
      model: 'message.model',
      error: "type=='error' && error",
      usage: usageAt('(usage || message.usage)'),
    },
  },
})
