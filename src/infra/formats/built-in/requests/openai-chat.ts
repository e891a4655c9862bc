import type { RequestTemplate } from '../../../../state/registry/response-format.ts'
import { chatMessages, chatTools, jsonSchema } from './openai-shapes.ts'

/** Under …/v1. Source: OpenAI's API reference, "Create chat completion". */
export const openaiChatRequest: RequestTemplate = {
  method: 'POST',
  path: '/chat/completions',
  headers: {},
  body: {
    model: '{{model}}',
    messages: chatMessages,
    tools: chatTools,
    tool_choice: '{{tools && tool_choice}}',
    parallel_tool_calls: '{{tools && parallel_tool_calls}}',
    response_format: jsonSchema,
    temperature: '{{temperature}}',
    top_p: '{{top_p}}',
    max_tokens: '{{parameters.max_tokens}}',
    max_completion_tokens: '{{parameters.max_completion_tokens}}',
    stop: '{{stop}}',
    seed: '{{seed}}',
    presence_penalty: '{{presence_penalty}}',
    frequency_penalty: '{{frequency_penalty}}',
    reasoning_effort: '{{reasoning_effort}}',
    user: '{{user}}',
    stream: '{{stream}}',
    stream_options: '{{stream ? {include_usage: stream} : `null`}}',
  },
}
