import type { ModelEntry } from '../../../models/ports/model-ports.ts'
import type { FormatInput, FormatView } from '../../../models/schemas/response-format.ts'
import { memoizeByObject } from '../../../state/memoize.ts'
import {
  openaiImageEdits,
  openaiImages,
  openaiSpeech,
  openaiTranscriptions,
  openaiVideos,
} from '../built-in/openai-media.ts'
import { rerank } from '../built-in/rerank.ts'

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
 * In OpenAI's protocol, a model of a category that is neither chat nor embeddings, with the format for it. A format of the model
 * reads the answer, and gives the request where it has one. Null: the category is another one.
 */
export const createCategoryFormats = (): ((model: ModelEntry) => ModelEntry | null) => {
  const merge = memoizeByObject((own: FormatView, request: FormatView['request']) => ({
    ...own,
    request: own.request ?? request,
  }))
  return (model) => {
    const standard = formats.get(model.category)
    if (standard === undefined) return null
    return { ...model, format: model.format ? merge(model.format, standard.request) : standard }
  }
}
