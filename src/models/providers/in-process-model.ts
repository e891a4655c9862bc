import type { Provider } from '../ports/model-ports.ts'
import type { BuiltInModel } from '../registry/settings-entries.ts'

/** A model that answers in this process: its entry in the registry, at an address that no host has, and its answers. */
export type InProcessModel = { entry: BuiltInModel; send: Provider['send'] }

/** A provider that has this model answer where its address is asked; all else goes to `others`. */
export const withInProcessModel = (others: Provider, model: InProcessModel): Provider => ({
  ...others,
  send(request, signal) {
    const isHere = request.model.endpoint.base_url === model.entry.base_url
    return (isHere ? model : others).send(request, signal)
  },
})
