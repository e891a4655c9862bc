import type { CanonicalRequest, ContentPart, ModelEntry } from '../ports/model-ports.ts'

const visionCategory = 'multimodal'
const visionCapability = 'vision'

/** Whether the registry says that a model accepts images: by its category or a capability. docs/decisions/0026. */
export const supportsImages = (model: Pick<ModelEntry, 'category' | 'capabilities'>): boolean =>
  model.category === visionCategory || model.capabilities.includes(visionCapability)

/** Why a model without vision is skipped. */
export const noVisionReason = `nothing says that it sees: give it the category ${visionCategory} or the capability "${visionCapability}"`

type Image = Extract<ContentPart, { type: 'image_url' }>['image_url']

/** The images of all messages, in their order. */
export const listImages = ({ messages }: Pick<CanonicalRequest, 'messages'>): Image[] =>
  messages.flatMap(({ content }) =>
    typeof content === 'string'
      ? []
      : content.flatMap((part) => (part.type === 'image_url' ? [part.image_url] : [])),
  )
