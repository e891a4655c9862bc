import type { PromptText } from '../provenance.ts'

/** A call of a tool as a model wrote it; `arguments` is JSON text, not yet checked. */
export type ToolCallRequest<Text extends string = string> = {
  id: string
  name: Text
  arguments: Text
}

/** What a model thought before it called tools, and its alias here: it goes back to its own vendor only. */
export type Reasoning<Text extends string = string> = { text: Text; by: string }

/** An image for a model; `data` is base64. */
export type ImagePart = { type: 'image'; mime_type: string; data: string }

/**
 * One message of a conversation with a model. Those of a prompt that Mason makes are of `PromptText`; a client of the
 * OpenAI-compatible endpoint sends its own.
 */
export type ModelMessage<Text extends string = PromptText> =
  | { role: 'system'; content: Text }
  /** Images come before the text. Only models with vision are chosen for them. */
  | { role: 'user'; content: Text; images?: readonly ImagePart[] }
  | {
      role: 'assistant'
      content: Text
      tool_calls?: readonly ToolCallRequest<Text>[]
      reasoning?: Reasoning<Text>
    }
  | { role: 'tool'; content: Text; tool_call_id: string }

/** A tool as a model sees it; `parameters` is a JSON Schema. `strict`: the vendor holds the arguments to it, where it can. */
export type ModelTool = {
  name: string
  description: string
  parameters: Record<string, unknown>
  strict?: boolean
}
