import { hash } from 'node:crypto'
import type { ModelMessage } from '../state/ports/model-messages.ts'
import type { Models } from '../state/ports/models.ts'

/** The SHA-256 hash of messages as JSON, in hexadecimal. */
export const hashMessages = (messages: readonly ModelMessage[]): string =>
  hash('sha256', JSON.stringify(messages))

/** The models of a visit; `note` is called once, with the hash of the messages that are sent first. */
export const withPromptHash = (models: Models, note: (sha256: string) => void): Models => {
  let isNoted = false
  return {
    ...models,
    call(request, signal) {
      if (!isNoted) note(hashMessages(request.messages))
      isNoted = true
      return models.call(request, signal)
    },
  }
}
