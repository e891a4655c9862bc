import { openaiImageEdits } from '../../formats/built-in/openai-image-edits.ts'
import { openaiImages } from '../../formats/built-in/openai-images.ts'
import { openaiSpeech } from '../../formats/built-in/openai-speech.ts'
import { openaiTranscriptions } from '../../formats/built-in/openai-transcriptions.ts'
import { openaiVideos } from '../../formats/built-in/openai-videos.ts'
import { rerank } from '../../formats/built-in/rerank.ts'
import type { ModelEntry } from '../../ports/model-ports.ts'
import type { FormatInput, FormatView } from '../../schemas/response-format.ts'

const toView = (format: FormatInput): FormatView => ({
  ...format,
  id: `built-in ${format.name}`,
  built_in: true,
  created_at: '',
  updated_at: '',
})

const formats = new Map(
  [openaiImages, openaiImageEdits, openaiSpeech, openaiTranscriptions, openaiVideos, rerank].map((format) => [
    format.category,
    toView(format),
  ]),
)

/**
 * How to ask models of the categories that are neither chat nor embeddings in OpenAI's protocol. A format of the model
 * reads the answer, and gives the request where it has one. Null: the category is another one.
 */
export const createCategoryFormats = (): ((model: ModelEntry) => FormatView | null) => {
  const merged = new WeakMap<FormatView, FormatView>()
  return ({ category, format: own }) => {
    const standard = formats.get(category)
    if (standard === undefined) return null
    if (own === null) return standard
    const format = merged.get(own) ?? { ...own, request: own.request ?? standard.request }
    merged.set(own, format)
    return format
  }
}
