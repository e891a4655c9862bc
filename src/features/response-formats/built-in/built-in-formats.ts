import { anthropicMessages } from './anthropic-messages.ts'
import { cohereEmbeddings } from './cohere-embeddings.ts'
import { deepseekChat } from './deepseek-chat.ts'
import { geminiGenerateContent } from './gemini-generate-content.ts'
import { ollamaChat } from './ollama-chat.ts'
import { openaiChat } from './openai-chat.ts'
import { openaiEmbeddings } from './openai-embeddings.ts'
import { openaiImageEdits } from './openai-image-edits.ts'
import { openaiImages } from './openai-images.ts'
import { openaiResponses } from './openai-responses.ts'
import { openaiSpeech } from './openai-speech.ts'
import { openaiTranscriptions } from './openai-transcriptions.ts'
import { openaiVideos } from './openai-videos.ts'
import { qwenDashscope } from './qwen-dashscope.ts'
import { rerank } from './rerank.ts'
import { videoSubmitPoll } from './video-submit-poll.ts'
import { zhipuChat } from './zhipu-chat.ts'

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
