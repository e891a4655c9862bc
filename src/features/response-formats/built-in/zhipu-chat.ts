import { copyFields, defineFormat } from './format-declaration.ts'
import { chatBody, chunkPaths, completionPaths, jsonObjectTemplate } from './openai-chat.ts'

/** OpenAI's shape with `reasoning_content`, and its own finish reasons. Source: Zhipu's API reference, GLM. */

/** Zhipu's chat completions. */
export const zhipuChat = defineFormat({
  name: 'zhipu-chat',
  /** Under https://open.bigmodel.cn/api/paas/v4; it knows no choice of tools but auto. Source: Zhipu's API reference, "chat completions". */
  post: '/chat/completions',
  body: {
    ...chatBody,
    ...copyFields('max_tokens'),
    tool_choice: "{{tools && tool_choice ? 'auto' : `null`}}",
    response_format: jsonObjectTemplate,
    thinking: '{{parameters.thinking}}',
    stop: '{{stop ? to_array(stop) : `null`}}',
    user_id: '{{user}}',
  },
  paths: completionPaths,
  stream: { format: 'sse', done: '[DONE]', paths: chunkPaths },
})
