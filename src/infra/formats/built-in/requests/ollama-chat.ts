import type { RequestTemplate } from '../../../../state/registry/response-format.ts'

const messages =
  "{{messages[].compact({role: role, content: content || '', " +
  "images: parts[?type == 'image'] ? parts[?type == 'image'].base64 : `null`, " +
  'tool_calls: tool_calls[].{function: {name: name, arguments: from_json(arguments)}}, ' +
  "tool_name: role == 'tool' ? name : `null`})}}"

/** Under http://localhost:11434. Source: Ollama's API reference, "Generate a chat message". */
export const ollamaChatRequest: RequestTemplate = {
  method: 'POST',
  path: '/api/chat',
  headers: {},
  body: {
    model: '{{model}}',
    messages,
    tools:
      "{{tools[].{type: 'function', function: {name: name, description: description, parameters: parameters}}}}",
    format: '{{schema}}',
    think: '{{parameters.think}}',
    options: {
      temperature: '{{temperature}}',
      top_p: '{{top_p}}',
      top_k: '{{top_k}}',
      num_predict: '{{max_tokens}}',
      stop: '{{stop ? to_array(stop) : `null`}}',
      seed: '{{seed}}',
    },
    stream: '{{stream}}',
  },
}
