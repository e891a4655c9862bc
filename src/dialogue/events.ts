/** How the calls of a block run: one call alone, side by side, or one after the other. */
export type WrittenBlock = 'single' | 'parallel' | 'sequential'

/** A call as the model wrote it. The body is raw; `index` is its place in the block, and lines count from 1. */
export type ReadCall = {
  server: string
  tool: string
  body: string
  block: WrittenBlock
  index: number
  line: number
}

/** What a reply holds, in its order. Texts come in pieces of any size that never end within a tag or a character. */
export type DialogueEvent =
  | { kind: 'text'; part: 'said' | 'think' | 'answer'; text: string }
  | { kind: 'open' | 'close'; part: 'think' | 'answer' }
  | ({ kind: 'call' } & ReadCall)
  | { kind: 'block'; block: WrittenBlock; calls: readonly ReadCall[]; line: number }
  | { kind: 'execute'; line: number }
  /** The first one refuses the reply; calls before it do not run. */
  | { kind: 'error'; line: number; tag: string; expected: string; message: string }
  /** The reply is over: its characters that count, and what came after them and does not. */
  | { kind: 'end'; length: number; cut: DialogueCut | null }

/** Why and how many characters of a reply were cut. White space alone after `<execute_tools />` is no cut. */
export type DialogueCut = { at: 'execute_tools' | 'result' | 'size'; chars: number }
