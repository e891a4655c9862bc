import type { RequestTemplate } from '../../../../state/registry/response-format.ts'

const content =
  "parts[?type == 'image'] ? map(&(type == 'text' ? {type: 'input_text', text: text} : " +
  "{type: 'input_image', image_url: url, detail: detail || 'auto'}), parts) : content"
const calls = "tool_calls[].{type: 'function_call', call_id: id, name: name, arguments: arguments} || `[]`"
const result = "[{type: 'function_call_output', call_id: tool_call_id, output: content}]"

/** A message is one item, and each of its calls is another one. */
const items =
  "{{messages[?role != 'system'].[role == 'tool' ? " +
  `${result} : [parts ? [{role: role, content: ${content}}] : \`[]\`, ${calls}][]][] | []}}`

const choice = "tool_choice.function.name ? {type: 'function', name: tool_choice.function.name} : tool_choice"

/** Under …/v1. Nothing is kept at the vendor. Source: OpenAI's API reference, "Create a model response". */
export const openaiResponsesRequest: RequestTemplate = {
  method: 'POST',
  path: '/responses',
  headers: {},
  body: {
    model: '{{model}}',
    instructions: '{{system}}',
    input: items,
    tools:
      "{{tools[].{type: 'function', name: name, description: description, parameters: parameters, strict: `false`}}}",
    tool_choice: `{{tools && tool_choice ? (${choice}) : \`null\`}}`,
    parallel_tool_calls: '{{tools && parallel_tool_calls}}',
    text: "{{schema ? {format: {type: 'json_schema', name: role, schema: schema, strict: is_strict(schema)}} : `null`}}",
    reasoning: '{{reasoning_effort ? {effort: reasoning_effort} : `null`}}',
    temperature: '{{temperature}}',
    top_p: '{{top_p}}',
    max_output_tokens: '{{max_tokens}}',
    store: false,
    stream: '{{stream}}',
  },
}
