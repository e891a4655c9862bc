import type { ContentPart, ModelAsk, ModelEntry } from '../ports.ts'

/** Which models are shown images. docs/decisions/0026. */

/** Said by the registry: by the category, or as one of the capabilities. */
const category = 'multimodal'
const capability = 'vision'

export const sees = (model: Pick<ModelEntry, 'category' | 'capabilities'>): boolean =>
  model.category === category || model.capabilities.includes(capability)

export const whyBlind = `nothing says that it sees: give it the category ${category} or the capability "${capability}"`

type Image = Extract<ContentPart, { type: 'image_url' }>['image_url']

/** The images of all messages, in their order. */
export const imagesOf = ({ messages }: Pick<ModelAsk, 'messages'>): Image[] =>
  messages.flatMap(({ content }) =>
    typeof content === 'string'
      ? []
      : content.flatMap((part) => (part.type === 'image_url' ? [part.image_url] : [])),
  )
