import { languageTags } from './tags.ts'

/** The language in which a model thinks, calls tools and answers as plain text: docs/contract.md, section 6. */

/** A call as the language writes it: the body is JSON, or what its tool takes as it is. */
export type WrittenCall = { server: string; tool: string; body: string }

/** A part of a dialogue. The calls of a block are followed by the order to run them. */
export type DialoguePart =
  | { kind: 'think' | 'answer'; text: string }
  | { kind: 'calls'; block: 'parallel' | 'sequential'; calls: readonly WrittenCall[] }
  | { kind: 'result'; index: number; text: string }

const tagStart = new RegExp(`<(?=/?(?:${languageTags.join('|')})(?![\\w-]))`, 'g')

/** A text in which no tag of the language begins: each `<` of one is a `‹`. */
export const withoutTags = (text: string): string => text.replace(tagStart, '‹')

const bareTag = '[A-Za-z_][\\w.-]{0,125}>'
const callStart = new RegExp(`<(?=${bareTag}[ \\t\\r\\n]*<${bareTag})`, 'g')

/** The same, and no call begins: of two tags with nothing but a name that follow each other, the `<` of the first is a `‹`. */
export const toResultText = (text: string): string => withoutTags(text).replace(callStart, '‹')

const writeCall = ({ server, tool, body }: WrittenCall): string =>
  `<${server}><${tool}>${body}</${tool}></${server}>`

const writePart = (part: DialoguePart): string => {
  switch (part.kind) {
    case 'think':
      return `<think>${withoutTags(part.text)}</think>`
    case 'answer':
      // it ends at the last closing tag, so nothing in it needs another form
      return `<answer>${part.text}</answer>`
    case 'result':
      return `<result index="${part.index}">${toResultText(part.text)}</result>`
    case 'calls': {
      const { block, calls } = part
      const [first] = calls
      const written =
        first && calls.length === 1
          ? [writeCall(first)]
          : [`<${block}>`, ...calls.map((call) => `    ${writeCall(call)}`), `</${block}>`]
      return [...written, '<execute_tools />'].join('\n')
    }
  }
}

/**
 * Writes a dialogue, its parts joined by one newline.
 *
 * @example
 * writeDialogue([{ kind: 'think', text: 'Easy.' }, { kind: 'answer', text: '4' }])
 * // <think>Easy.</think>
 * // <answer>4</answer>
 */
export const writeDialogue = (parts: readonly DialoguePart[]): string => parts.map(writePart).join('\n')
