import { anthropicMessages } from './anthropic-messages.ts'
import { cohereEmbeddings } from './cohere-embeddings.ts'
import { geminiGenerateContent } from './gemini-generate-content.ts'
import { ollamaChat } from './ollama-chat.ts'
import { deepseekChat, openaiChat, zhipuChat } from './openai-chat.ts'
import { openaiEmbeddings } from './openai-embeddings.ts'
import {
  openaiImageEdits,
  openaiImages,
  openaiSpeech,
  openaiTranscriptions,
  openaiVideos,
} from './openai-media.ts'
import { openaiResponses } from './openai-responses.ts'
import { qwenDashscope } from './qwen-dashscope.ts'
import { rerank } from './rerank.ts'
import { videoSubmitPoll } from './video-submit-poll.ts'

/** The formats of every registry. */
export const builtInFormats = () => [
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
  openaiImageEdits,
  openaiTranscriptions,
  openaiSpeech,
  openaiVideos,
  videoSubmitPoll,
]
