import type { FormatPaths } from '../../../models/schemas/response-format.ts'
import { copyFields, defineFormat, inputOutputUsage } from './format-declaration.ts'
import { chatCallsTemplate, chatToolsTemplate, jsonSchemaTemplate } from './openai-chat.ts'

/**
 * Alibaba's own protocol, with `result_format: message` and `incremental_output: true`: events have the shape of whole
 * responses, and `finish_reason` is the text "null" until the last. Source: DashScope API reference of Model Studio.
 */

const paths: FormatPaths = {
  text: "output.text || output.choices[0].message.content || output.choices[0].finish_reason && ''",
  reasoning: 'output.choices[0].message.reasoning_content',
  tool_calls:
    'output.choices[0].message.tool_calls[].' +
    '{index: index, id: id, name: function.name, arguments: function.arguments}',
  finish: 'output.finish_reason || output.choices[0].finish_reason',
  error: 'code && {code: code, message: message}',
  usage: {
    ...inputOutputUsage,
    cached_tokens: 'usage.prompt_tokens_details.cached_tokens',
    reasoning_tokens: 'usage.output_tokens_details.reasoning_tokens',
  },
}

const messageWith = (content: string): string =>
  `compact({role: role, content: ${content}, tool_calls: ${chatCallsTemplate}, tool_call_id: tool_call_id, ` +
  "name: role == 'tool' ? name : `null`})"
const shows = "(messages[].parts[] | [?type == 'image'])"
const parts = "map(&(type == 'text' ? {text: text} : {image: url}), parts)"

/** Qwen by the DashScope protocol. */
export const qwenDashscope = defineFormat({
  name: 'qwen-dashscope',
  /**
   * Under https://dashscope.aliyuncs.com/api/v1 (or -intl). Requests with images have another path, where every content is a
   * list. Source: DashScope API reference of Model Studio, text and multimodal generation.
   */
  post: `/services/aigc/{{${shows} ? 'multimodal' : 'text'}}-generation/generation`,
  headers: { 'x-dashscope-sse': "{{stream ? 'enable' : `null`}}" },
  body: {
    ...copyFields('model'),
    input: {
      messages: `{{${shows} ? messages[].${messageWith(parts)} : messages[].${messageWith("content || ''")}}}`,
    },
    parameters: {
      ...copyFields('temperature', 'top_p', 'top_k', 'max_tokens', 'stop', 'seed', 'presence_penalty'),
      result_format: 'message',
      incremental_output: '{{stream ? stream : `null`}}',
      tools: chatToolsTemplate,
      tool_choice: "{{tools && (tool_choice == 'required' ? 'auto' : tool_choice)}}",
      parallel_tool_calls: '{{tools && parallel_tool_calls}}',
      response_format: jsonSchemaTemplate,
      enable_thinking: '{{parameters.enable_thinking}}',
    },
  },
  paths,
  stream: { format: 'sse', paths },
})
