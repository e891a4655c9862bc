import type { RequestTemplate } from '../../../../state/registry/response-format.ts'
import { chatMessages, chatTools, jsonObject } from './openai-shapes.ts'

/** Under https://open.bigmodel.cn/api/paas/v4; it knows no choice of tools but auto. Source: Zhipu's API reference, "chat completions". */
export const zhipuChatRequest: RequestTemplate = {
  method: 'POST',
  path: '/chat/completions',
  headers: {},
  body: {
    model: '{{model}}',
    messages: chatMessages,
    tools: chatTools,
    tool_choice: "{{tools && tool_choice ? 'auto' : `null`}}",
    response_format: jsonObject,
    thinking: '{{parameters.thinking}}',
    temperature: '{{temperature}}',
    top_p: '{{top_p}}',
    max_tokens: '{{max_tokens}}',
    stop: '{{stop ? to_array(stop) : `null`}}',
    user_id: '{{user}}',
    stream: '{{stream}}',
  },
}
