import type { RequestTemplate } from '../../../../state/registry/response-format.ts'

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

/** Under https://api.anthropic.com/v1. Source: Anthropic's API reference, "Create a Message", and "Structured outputs". */
export const anthropicMessagesRequest: RequestTemplate = {
  method: 'POST',
  path: '/messages',
  headers: { 'x-api-key': '{{key}}', 'anthropic-version': '2023-06-01' },
  body: {
    model: '{{model}}',
    max_tokens: '{{max_tokens || max_output || `4096`}}',
    system: '{{system}}',
    messages,
    tools: '{{tools[].{name: name, description: description, input_schema: parameters}}}',
    tool_choice: `{{tools && tool_choice ? (${choice}) : \`null\`}}`,
    output_config: "{{schema ? {format: {type: 'json_schema', schema: schema}} : `null`}}",
    thinking: '{{parameters.thinking}}',
    temperature: '{{temperature}}',
    top_p: '{{top_p}}',
    top_k: '{{top_k}}',
    stop_sequences: '{{stop ? to_array(stop) : `null`}}',
    stream: '{{stream}}',
  },
}
