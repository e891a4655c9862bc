import type { RequestTemplate } from '../../../../state/registry/response-format.ts'
import { chatTools, jsonObject, textMessagesWith } from './openai-shapes.ts'

/** Calls go back with what was thought before them, be it nothing: in its thinking mode it refuses them without (400). */
const messages = textMessagesWith("reasoning_content: tool_calls && (reasoning || '')")

/** Under https://api.deepseek.com. Source: DeepSeek's API reference, "Create Chat Completion". */
export const deepseekChatRequest: RequestTemplate = {
  method: 'POST',
  path: '/chat/completions',
  headers: {},
  body: {
    model: '{{model}}',
    messages,
    tools: chatTools,
    tool_choice: '{{tools && tool_choice}}',
    response_format: jsonObject,
    thinking: '{{parameters.thinking}}',
    temperature: '{{temperature}}',
    top_p: '{{top_p}}',
    max_tokens: '{{max_tokens}}',
    stop: '{{stop}}',
    presence_penalty: '{{presence_penalty}}',
    frequency_penalty: '{{frequency_penalty}}',
    stream: '{{stream}}',
    stream_options: '{{stream ? {include_usage: stream} : `null`}}',
  },
}
