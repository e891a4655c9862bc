import type { ModelRequest } from '../../src/state/ports/models.ts'
import { createDataFence, derivedLabel } from '../../src/state/provenance.ts'

/** Reads prompts by their marks alone, as a model may: the first closing mark ends a fence. */

/** The mark of the session that began with this prompt. */
export const markOf = (prompt: string): string =>
  /^<(data-\w+)/.exec(createDataFence({ prompts: [prompt] })('x', derivedLabel))?.[1] ?? ''

type Split = { outside: string; inside: { origin: string; text: string }[] }

export const splitFences = (text: string, mark: string): Split => {
  const opening = new RegExp(`<${mark} (\\w+)>\n`, 'g')
  const closing = `\n</${mark}>`
  const inside: Split['inside'] = []
  let outside = ''
  for (let at = 0; ; ) {
    opening.lastIndex = at
    const found = opening.exec(text)
    if (!found) return { outside: outside + text.slice(at), inside }
    outside += text.slice(at, found.index)
    const end = text.indexOf(closing, opening.lastIndex - 1)
    if (end < 0) throw new Error(`a fence is never closed: ${text.slice(found.index, found.index + 80)}`)
    inside.push({ origin: found[1] ?? '', text: text.slice(opening.lastIndex, end) })
    at = end + closing.length
  }
}

/** The texts that a model reads of a request: its messages, the schema of its answer, the tools. */
export const textsOf = ({ messages, schema, tools }: ModelRequest): string[] => [
  ...messages.map(({ content }) => content),
  JSON.stringify(schema ?? {}),
  JSON.stringify(tools ?? []),
]

/** What stands in fields of their own, where no fence fits: calls and reasoning. */
export const fieldsOf = ({ messages }: ModelRequest): string[] =>
  messages.flatMap((message) =>
    message.role === 'assistant'
      ? [
          ...(message.tool_calls ?? []).flatMap(({ name, arguments: args }) => [name, args]),
          message.reasoning?.text ?? '',
        ]
      : [],
  )
