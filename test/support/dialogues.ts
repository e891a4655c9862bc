import fc from 'fast-check'
import type { DialogueEvent } from '../../src/dialogue/events.ts'
import { createDialogueParser } from '../../src/dialogue/parser.ts'
import { type DialoguePart, toResultText, withoutTags } from '../../src/dialogue/write.ts'

/** What the language is made of, whole and broken: any sequence of these is a reply. */
const pieces = [
  ...['<think>', '</think>', '<answer>', '</answer>', '<parallel>', '</parallel>', '<sequential>'],
  ...['</sequential>', '<execute_tools />', '<execute_tools/>', '<execute_tools', '<result index="0">'],
  ...['</result>', '<result', '<results>', '<s>', '</s>', '<t>', '</t>', '<s><t>', '</t></s>', '</t>\n</s>'],
  ...['<s><t>x</t></s>', '<parallel><s><t>a</t></s></parallel>', '<', '>', '/', '</', '<<', '<b class="x">'],
  ...[' ', '\n', '  \n\t', 'word', 'a < b & c', '💩', '\ud83d', '\udca9', '{"a": 1}', '{results[0]}', '<!--'],
] as const

const rough = fc.array(fc.oneof(fc.constantFrom(...pieces), fc.string({ unit: 'binary', maxLength: 4 })), {
  maxLength: 40,
})

const name = fc.stringMatching(/^[a-z_][a-z0-9_]{0,9}$/).filter((text) => withoutTags(`<${text}>`)[0] === '<')
const prose = fc
  .array(fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom(...pieces)), { maxLength: 8 })
  .map((texts) => texts.join(''))

const writtenCall = fc
  .record({ server: name, tool: name, body: prose })
  .filter(({ server, tool, body }) => !`${body}</${tool}></${server}>`.match(endOf(tool, server, body)))

/** Matches a call whose body would end before its end. */
const endOf = (tool: string, server: string, body: string): RegExp =>
  new RegExp(`^[^]{0,${Math.max(0, body.length - 1)}}(?<!^[^]{${body.length}})</${tool}>\\s*</${server}>`)

const calls = fc.record({
  kind: fc.constant('calls' as const),
  block: fc.constantFrom('parallel' as const, 'sequential' as const),
  calls: fc.array(writtenCall, { minLength: 1, maxLength: 5 }),
})
const think = prose.map((text): DialoguePart => ({ kind: 'think', text: withoutTags(text) }))
const results = fc
  .array(prose, { minLength: 1, maxLength: 4 })
  .map((texts) =>
    texts.map((text, index): DialoguePart => ({ kind: 'result', index, text: toResultText(text) })),
  )

/** Whole dialogues: rounds of thoughts, calls and results, then an answer, their texts as the language can hold them. */
export const dialogues: fc.Arbitrary<DialoguePart[]> = fc
  .record({
    rounds: fc.array(fc.tuple(think, calls, results), { maxLength: 3 }),
    answer: prose.filter((text) => !text.includes('<answer>')),
  })
  .map(({ rounds, answer }) => [
    ...rounds.flatMap(([thought, called, answers]) => [thought, called, ...answers]),
    { kind: 'answer', text: answer },
  ])

/** Replies of every shape, most of them broken. */
export const replies: fc.Arbitrary<string> = rough.map((texts) => texts.join(''))

/** The events of a reply that comes in these pieces; neighboring texts are one, since their sizes are the splits' alone. */
export const readSplit = (chunks: readonly string[]): DialogueEvent[] => {
  const parser = createDialogueParser()
  const events = [...chunks.flatMap((chunk) => parser.push(chunk)), ...parser.end()]
  return events.reduce<DialogueEvent[]>((merged, event) => {
    const last = merged.at(-1)
    if (event.kind === 'text' && last?.kind === 'text' && last.part === event.part)
      merged.splice(-1, 1, { ...last, text: last.text + event.text })
    else merged.push(event)
    return merged
  }, [])
}

/** A text in the pieces that these places cut it into. */
export const splitAt = (text: string, places: readonly number[]): string[] => {
  const cuts = [0, ...places.map((place) => place % (text.length + 1)), text.length].sort((a, b) => a - b)
  return cuts.slice(1).map((to, at) => text.slice(cuts[at], to))
}

/** The texts of the results at the beginning of what was put back. Throws where their places are not 0, 1, 2 … */
export const readPutBack = (text: string): string[] => {
  const texts: string[] = []
  for (let rest = text; rest.startsWith('<result'); ) {
    const opening = `<result index="${texts.length}">`
    const end = rest.indexOf('</result>')
    if (!rest.startsWith(opening) || end < 0) throw new Error(`no whole ${opening} in ${rest.slice(0, 200)}`)
    texts.push(rest.slice(opening.length, end))
    rest = rest.slice(end + '</result>\n'.length)
  }
  return texts
}
