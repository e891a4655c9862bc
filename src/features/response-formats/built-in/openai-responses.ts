import { copyFields, defineFormat } from './format-declaration.ts'

/** Source: OpenAI's API reference, "Responses" and "Streaming events". */

const content =
  "parts[?type == 'image'] ? map(&(type == 'text' ? {type: 'input_text', text: text} : " +
  "{type: 'input_image', image_url: url, detail: detail || 'auto'}), parts) : content"
const calls = "tool_calls[].{type: 'function_call', call_id: id, name: name, arguments: arguments} || `[]`"
const result = "[{type: 'function_call_output', call_id: tool_call_id, output: content}]"

/** A message is one item, and each of its calls is another item. */
const items =
  "{{messages[?role != 'system'].[role == 'tool' ? " +
  `${result} : [parts ? [{role: role, content: ${content}}] : \`[]\`, ${calls}][]][] | []}}`

const choice = "tool_choice.function.name ? {type: 'function', name: tool_choice.function.name} : tool_choice"

const done = (type: string): string => `type=='response.output_item.done' && item.type=='${type}'`

const usageAt = (at: string) => ({
  prompt_tokens: `${at}.input_tokens`,
  completion_tokens: `${at}.output_tokens`,
  total_tokens: `${at}.total_tokens`,
  cached_tokens: `${at}.input_tokens_details.cached_tokens`,
  reasoning_tokens: `${at}.output_tokens_details.reasoning_tokens`,
})

/** OpenAI's Responses. */
export const openaiResponses = defineFormat({
  name: 'openai-responses',
  /** Under …/v1. The vendor stores nothing. Source: OpenAI's API reference, "Create a model response". */
  post: '/responses',
  body: {
    ...copyFields('model', 'temperature', 'top_p', 'stream'),
    instructions: '{{system}}',
    input: items,
    tools:
      "{{tools[].{type: 'function', name: name, description: description, parameters: parameters, strict: strict || `false`}}}",
    tool_choice: `{{tools && tool_choice ? (${choice}) : \`null\`}}`,
    parallel_tool_calls: '{{tools && parallel_tool_calls}}',
    text: "{{schema ? {format: {type: 'json_schema', name: role, schema: schema, strict: is_strict(schema)}} : `null`}}",
    reasoning: '{{reasoning_effort ? {effort: reasoning_effort} : `null`}}',
    max_output_tokens: '{{max_tokens}}',
    store: false,
  },
  paths: {
    // some servers send all of it with their last event only
    text: "(response || @).output[?type=='message'].content[].[text, refusal][]",
    reasoning: "(response || @).output[?type=='reasoning'].[summary, content][][].text",
    tool_calls:
      "(response || @).output[?type=='function_call'].{id: call_id, name: name, arguments: arguments}",
    images: "output[?type=='image_generation_call'].result",
    // some servers give no details
    finish: "incomplete_details.reason || status=='incomplete' && 'length' || status",
    model: 'model',
    error: 'error',
    usage: usageAt('usage'),
  },
  stream: {
    format: 'sse',
    paths: {
      // any finished item makes an answer; a message does by its text, so one whose text never came is not read as empty
      text:
        "(type=='response.output_text.delta' || type=='response.refusal.delta') && delta || " +
        "type=='response.output_item.done' && item.type!='message' && ''",
      reasoning:
        "(type=='response.reasoning_summary_text.delta' || type=='response.reasoning_text.delta') && delta",
      // some servers (LM Studio) send arguments only whole, at the end
      tool_calls:
        "type=='response.output_item.added' && item.type=='function_call' && " +
        '{index: output_index, id: item.call_id, name: item.name} || ' +
        "type=='response.function_call_arguments.delta' && {index: output_index, arguments: delta} || " +
        "type=='response.function_call_arguments.done' && {index: output_index, arguments: arguments, whole: `true`} || " +
        `${done('function_call')} && ` +
        '{index: output_index, id: item.call_id, name: item.name, arguments: item.arguments, whole: `true`}',
      images: `${done('image_generation_call')} && item.result`,
      finish:
        "response.incomplete_details.reason || (type=='response.completed' || type=='response.incomplete') && " +
        "response.status=='incomplete' && 'length' || response.status",
      model: 'response.model',
      error: "response.error || error || type=='error' && {message: message, code: code}",
      usage: usageAt('response.usage'),
    },
  },
})
