import type { FormatPaths } from '../../../models/schemas/response-format.ts'
import { copyFields, defineFormat } from './format-declaration.ts'
import { chatToolsTemplate } from './openai-chat.ts'

/** Source: Ollama's API reference, "Generate a chat message". Lines of a stream have the shape of whole responses. */

const paths: FormatPaths = {
  text: 'message.content',
  reasoning: 'message.thinking',
  tool_calls: 'message.tool_calls[].{id: id, name: function.name, arguments: function.arguments || `{}`}',
  finish: "done && (done_reason || 'stop')",
  model: 'model',
  error: 'error',
  usage: { prompt_tokens: 'prompt_eval_count', completion_tokens: 'eval_count' },
}

const messages =
  "{{messages[].compact({role: role, content: content || '', " +
  "images: parts[?type == 'image'] ? parts[?type == 'image'].base64 : `null`, " +
  'tool_calls: tool_calls[].{function: {name: name, arguments: from_json(arguments)}}, ' +
  "tool_name: role == 'tool' ? name : `null`})}}"

/** Ollama's own chat protocol. */
export const ollamaChat = defineFormat({
  name: 'ollama-chat',
  /** Under http://localhost:11434. Source: Ollama's API reference, "Generate a chat message". */
  post: '/api/chat',
  body: {
    ...copyFields('model', 'stream'),
    messages,
    tools: chatToolsTemplate,
    format: '{{schema}}',
    think: '{{parameters.think}}',
    options: {
      ...copyFields('temperature', 'top_p', 'top_k', 'seed'),
      num_predict: '{{max_tokens}}',
      stop: '{{stop ? to_array(stop) : `null`}}',
    },
  },
  paths,
  stream: { format: 'ndjson', paths },
})
