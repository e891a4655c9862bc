import type { ModelAsk, ModelEntry, RegistryView } from '../ports.ts'

/**
 * The same ask with the reasoning of this model's own vendor only: to another one it would be a private format, or none
 * of his business. docs/decisions/0017.
 */
export const withOwnReasoning = (
  ask: ModelAsk,
  { vendor }: Pick<ModelEntry, 'vendor'>,
  { models }: Pick<RegistryView, 'models'>,
): ModelAsk => {
  const isForeign = (message: ModelAsk['messages'][number]): boolean =>
    message.role === 'assistant' &&
    message.reasoning !== undefined &&
    models.get(message.reasoning.by)?.vendor.id !== vendor.id
  if (!ask.messages.some(isForeign)) return ask
  const messages = ask.messages.map((message) => {
    if (!isForeign(message) || message.role !== 'assistant') return message
    const { reasoning: _, ...rest } = message
    return rest
  })
  return { ...ask, messages }
}
