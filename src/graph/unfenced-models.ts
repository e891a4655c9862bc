import type { Models } from '../state/ports/models.ts'
import { withoutFences } from '../state/provenance.ts'
import type { OnText } from './text-streaming.ts'

/** A mark, or its beginning, at the end of a text, with the line end beside it, as text or in JSON. */
const openEnd = /(?:<data-\w{6} \w+>)?(?:\n|\\n?)?(?:<[/\w -]{0,24}(?:>\\?)?)?$/
/** Longer than any mark with its line ends. */
const maxOpenLength = 256

/** The models of a run. They see fences in their prompts, and where one imitates them, its words go on without. */
export const withUnfencedReplies = (models: Models): Models => ({
  ...models,
  async call({ onText, ...request }, signal) {
    const stream = onText && streamUnfenced(onText)
    const reply = await models.call({ ...request, ...(stream && { onText: stream.write }) }, signal)
    stream?.flush()
    const tool_calls = reply.tool_calls.map((call) => ({ ...call, arguments: withoutFences(call.arguments) }))
    return { ...reply, text: withoutFences(reply.text), tool_calls }
  },
})

/** Passes on what is certainly no mark; `flush` the rest. */
const streamUnfenced = (onText: OnText): { write: OnText; flush(): void } => {
  let current = 0
  let held = ''
  const pass = (text: string): void => {
    const passed = withoutFences(text)
    if (passed !== '') onText(passed, current)
  }
  return {
    write(chunk, attempt) {
      const text = attempt === current ? held + chunk : chunk
      current = attempt
      held = openEnd.exec(text.slice(-maxOpenLength))?.[0] ?? ''
      pass(text.slice(0, text.length - held.length))
    },
    flush: () => pass(held),
  }
}
