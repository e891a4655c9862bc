import type { DialogueCut, ReadCall, WrittenBlock } from './events.ts'
import { createDialogueParser } from './parser.ts'

/** A block of calls, whole. */
export type ReadBlock = { block: WrittenBlock; calls: readonly ReadCall[]; line: number }

/** A reply in the language, read whole. */
export type DialogueReply = {
  /** Its thoughts, joined by newlines, and the text outside of all parts. */
  thought: string
  said: string
  /** The last answer that it holds, and how many there are. */
  answer: string | null
  answers: number
  /** The last one is to be run, unless there is an error; the earlier ones are not. */
  blocks: readonly ReadBlock[]
  /** Whether `<execute_tools />` asks for it. */
  isExecuted: boolean
  /** Why the reply is refused, the line and the tag named; null for one that can be used. */
  error: string | null
  /** What the model wrote: the reply without what was cut, and without white space at its end, wherever it was cut. */
  written: string
  cut: DialogueCut | null
}

/**
 * Reads a reply whole; nothing in it is decoded.
 *
 * @example
 * readReply('<think>Easy.</think><answer>4</answer>').answer // '4'
 */
export const readReply = (text: string): DialogueReply => {
  const parser = createDialogueParser()
  const texts = { said: '', think: '', answer: '' }
  const blocks: ReadBlock[] = []
  let answers = 0
  let isExecuted = false
  let error: string | null = null
  let cut: DialogueCut | null = null
  let written = text
  for (const event of [...parser.push(text), ...parser.end()]) {
    if (event.kind === 'text') texts[event.part] += event.text
    else if (event.kind === 'open' && event.part === 'answer') {
      texts.answer = ''
      answers++
    } else if (event.kind === 'open') texts.think += texts.think === '' ? '' : '\n'
    else if (event.kind === 'block') blocks.push({ block: event.block, calls: event.calls, line: event.line })
    else if (event.kind === 'execute') isExecuted = true
    else if (event.kind === 'error') error ??= event.message
    else if (event.kind === 'end') {
      cut = event.cut
      written = text.slice(0, event.length)
    }
  }
  return {
    thought: texts.think,
    said: texts.said.trim(),
    answer: answers > 0 ? texts.answer : null,
    answers,
    blocks,
    isExecuted,
    error,
    cut,
    written: written.trimEnd(),
  }
}
