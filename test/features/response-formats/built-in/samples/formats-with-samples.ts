import { builtInFormats } from '../../../../../src/features/response-formats/built-in/built-in-formats.ts'
import type { FormatInput } from '../../../../../src/models/schemas/response-format.ts'
import { anthropicMessagesSamples } from './anthropic-messages.ts'
import { cohereEmbeddingsSamples } from './cohere-embeddings.ts'
import { type DeclaredSample, toFormatSamples } from './declared-samples.ts'
import { deepseekChatSamples } from './deepseek-chat.ts'
import { geminiGenerateContentSamples } from './gemini-generate-content.ts'
import { ollamaChatSamples } from './ollama-chat.ts'
import { openaiChatSamples } from './openai-chat.ts'
import { openaiEmbeddingsSamples } from './openai-embeddings.ts'
import { openaiImagesSamples } from './openai-images.ts'
import { openaiResponsesSamples } from './openai-responses.ts'
import { openaiSpeechSamples } from './openai-speech.ts'
import { openaiTranscriptionsSamples } from './openai-transcriptions.ts'
import { openaiVideosSamples } from './openai-videos.ts'
import { qwenDashscopeSamples } from './qwen-dashscope.ts'
import { rerankSamples } from './rerank.ts'
import { videoSubmitPollSamples } from './video-submit-poll.ts'
import { zhipuChatSamples } from './zhipu-chat.ts'

/** Vendors' responses that each format must read. */
const samplesOf: Record<string, DeclaredSample[]> = {
  'anthropic-messages': anthropicMessagesSamples,
  'cohere-embeddings': cohereEmbeddingsSamples,
  'deepseek-chat': deepseekChatSamples,
  'gemini-generate-content': geminiGenerateContentSamples,
  'ollama-chat': ollamaChatSamples,
  'openai-chat': openaiChatSamples,
  'openai-embeddings': openaiEmbeddingsSamples,
  'openai-image-edits': openaiImagesSamples,
  'openai-images': openaiImagesSamples,
  'openai-responses': openaiResponsesSamples,
  'openai-speech': openaiSpeechSamples,
  'openai-transcriptions': openaiTranscriptionsSamples,
  'openai-videos': openaiVideosSamples,
  'qwen-dashscope': qwenDashscopeSamples,
  rerank: rerankSamples,
  'video-submit-poll': videoSubmitPollSamples,
  'zhipu-chat': zhipuChatSamples,
}

/** The built-in formats, each with vendors' responses that it must read. */
export const formatsWithSamples = (): FormatInput[] =>
  builtInFormats().map((format) => ({
    ...format,
    samples: toFormatSamples(samplesOf[format.name] ?? [], format),
  }))
