import type { FormatPaths } from '../../../models/schemas/response-format.ts'
import { copyFields, defineFormat } from './format-declaration.ts'
import {
  chatBody,
  chunkPaths,
  completionPaths,
  createTextMessagesTemplate,
  jsonObjectTemplate,
  strictToolsTemplate,
} from './openai-chat.ts'

/** OpenAI's shape with `reasoning_content` and its own cache counts. Source: DeepSeek's API reference; the names of the counts were checked against a public client (docs.rs, deepseek-sdk 0.3.0, chat/response.rs). */

const usage: FormatPaths['usage'] = {
  ...completionPaths.usage,
  cached_tokens: 'usage.prompt_cache_hit_tokens || usage.prompt_tokens_details.cached_tokens',
}

/** Calls need the reasoning before them, even an empty one: the thinking mode refuses them without it (400). */
const messages = createTextMessagesTemplate("reasoning_content: tool_calls && (reasoning || '')")

/** DeepSeek's chat completions. */
export const deepseekChat = defineFormat({
  name: 'deepseek-chat',
  /** Under https://api.deepseek.com. Source: DeepSeek's API reference, "Create Chat Completion". */
  post: '/chat/completions',
  body: {
    ...chatBody,
    tools: strictToolsTemplate,
    ...copyFields('max_tokens', 'stop', 'presence_penalty', 'frequency_penalty'),
    messages,
    tool_choice: '{{tools && tool_choice}}',
    response_format: jsonObjectTemplate,
    thinking: '{{parameters.thinking}}',
    stream_options: '{{stream ? {include_usage: stream} : `null`}}',
  },
  paths: { ...completionPaths, usage },
  stream: { format: 'sse', done: '[DONE]', paths: { ...chunkPaths, usage } },
})
