import type { FormatInput } from '../../state/registry/response-format.ts'
import { anthropicMessages } from './built-in/anthropic-messages.ts'
import { cohereEmbeddings } from './built-in/cohere-embeddings.ts'
import { deepseekChat } from './built-in/deepseek-chat.ts'
import { geminiGenerateContent } from './built-in/gemini-generate-content.ts'
import { ollamaChat } from './built-in/ollama-chat.ts'
import { openaiChat } from './built-in/openai-chat.ts'
import { openaiEmbeddings } from './built-in/openai-embeddings.ts'
import { openaiImages } from './built-in/openai-images.ts'
import { openaiResponses } from './built-in/openai-responses.ts'
import { qwenDashscope } from './built-in/qwen-dashscope.ts'
import { rerank } from './built-in/rerank.ts'
import { videoSubmitPoll } from './built-in/video-submit-poll.ts'
import { zhipuChat } from './built-in/zhipu-chat.ts'

/** The formats that every registry begins with, in the order in which a pasted answer is tried on them. */
export const builtInFormats = (): readonly FormatInput[] => [
  openaiChat,
  openaiResponses,
  anthropicMessages,
  geminiGenerateContent,
  ollamaChat,
  deepseekChat,
  qwenDashscope,
  zhipuChat,
  openaiEmbeddings,
  cohereEmbeddings,
  rerank,
  openaiImages,
  videoSubmitPoll,
]
