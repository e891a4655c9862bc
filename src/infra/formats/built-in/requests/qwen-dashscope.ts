import type { RequestTemplate } from '../../../../state/registry/response-format.ts'
import { chatTools, jsonSchema } from './openai-shapes.ts'

const calls = "tool_calls[].{id: id, type: 'function', function: {name: name, arguments: arguments}}"

const messageWith = (content: string): string =>
  `compact({role: role, content: ${content}, tool_calls: ${calls}, tool_call_id: tool_call_id, ` +
  "name: role == 'tool' ? name : `null`})"
const shows = "(messages[].parts[] | [?type == 'image'])"
const parts = "map(&(type == 'text' ? {text: text} : {image: url}), parts)"

/**
 * Under https://dashscope.aliyuncs.com/api/v1 (or -intl). What shows images has a path of its own, where every content is a
 * list. Source: DashScope API reference of Model Studio, text and multimodal generation.
 */
export const qwenDashscopeRequest: RequestTemplate = {
  method: 'POST',
  path: `/services/aigc/{{${shows} ? 'multimodal' : 'text'}}-generation/generation`,
  headers: { 'x-dashscope-sse': "{{stream ? 'enable' : `null`}}" },
  body: {
    model: '{{model}}',
    input: {
      messages: `{{${shows} ? messages[].${messageWith(parts)} : messages[].${messageWith("content || ''")}}}`,
    },
    parameters: {
      result_format: 'message',
      incremental_output: '{{stream ? stream : `null`}}',
      tools: chatTools,
      tool_choice: "{{tools && (tool_choice == 'required' ? 'auto' : tool_choice)}}",
      parallel_tool_calls: '{{tools && parallel_tool_calls}}',
      response_format: jsonSchema,
      enable_thinking: '{{parameters.enable_thinking}}',
      temperature: '{{temperature}}',
      top_p: '{{top_p}}',
      top_k: '{{top_k}}',
      max_tokens: '{{max_tokens}}',
      stop: '{{stop}}',
      seed: '{{seed}}',
      presence_penalty: '{{presence_penalty}}',
    },
  },
}
