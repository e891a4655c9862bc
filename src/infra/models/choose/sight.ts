import type { ModelAsk, ModelEntry } from '../ports.ts'

/** Which models are shown images. docs/decisions/0026. */

/** Said by the registry: by the category, or as one of the capabilities. */
const category = 'multimodal'
const capability = 'vision'

export const sees = (model: Pick<ModelEntry, 'category' | 'capabilities'>): boolean =>
  model.category === category || model.capabilities.includes(capability)

export const whyBlind = `nothing says that it sees: give it the category ${category} or the capability "${capability}"`

export const holdsImages = ({ messages }: Pick<ModelAsk, 'messages'>): boolean =>
  messages.some(
    ({ role, content }) =>
      role === 'user' && typeof content !== 'string' && content.some(({ type }) => type === 'image_url'),
  )
