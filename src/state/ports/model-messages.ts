/** A call of a tool as a model wrote it; `arguments` is JSON text, not yet checked. */
export type ToolCallRequest = {
  id: string
  name: string
  arguments: string
}

/** What a model thought before it called tools, and its alias here: it goes back to its own vendor only. */
export type Reasoning = { text: string; by: string }

/** An image for a model; `data` is base64. */
export type ImagePart = { type: 'image'; mime_type: string; data: string }

/** One message of a conversation with a model. */
export type ModelMessage =
  | { role: 'system'; content: string }
  /** Images come before the text. Only models with vision are chosen for them. */
  | { role: 'user'; content: string; images?: readonly ImagePart[] }
  | {
      role: 'assistant'
      content: string
      tool_calls?: readonly ToolCallRequest[]
      reasoning?: Reasoning
    }
  | { role: 'tool'; content: string; tool_call_id: string }

/** A tool as a model sees it; `parameters` is a JSON Schema. */
export type ModelTool = {
  name: string
  description: string
  parameters: Record<string, unknown>
}
