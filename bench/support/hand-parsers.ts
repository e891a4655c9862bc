import { type CanonicalResult, emptyResult, type MeteredUsage } from '../../src/models/ports/model-ports.ts'

/** Readers of OpenAI's shapes as one would write them for no other vendor: the limit that reading by data is held against. */

type Counts = {
  prompt_tokens?: number
  completion_tokens?: number
  total_tokens?: number
  prompt_tokens_details?: { cached_tokens?: number }
  completion_tokens_details?: { reasoning_tokens?: number }
}
type Call = { id: string; function: { name: string; arguments: string } }
type Message = {
  content?: string | null
  refusal?: string | null
  reasoning_content?: string | null
  tool_calls?: Call[] | null
}
type Body = {
  model?: string
  error?: { message?: string }
  usage?: Counts | null
  choices?: { message?: Message; delta?: Message; finish_reason?: string | null }[]
}

const usageOf = (counts: Counts | null | undefined): MeteredUsage | null => {
  if (counts == null) return null
  const prompt_tokens = counts.prompt_tokens ?? 0
  const completion_tokens = counts.completion_tokens ?? 0
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens: counts.total_tokens ?? prompt_tokens + completion_tokens,
    cached_tokens: counts.prompt_tokens_details?.cached_tokens ?? 0,
    reasoning_tokens: counts.completion_tokens_details?.reasoning_tokens ?? 0,
  }
}

const finishOf = (word: string | null | undefined): CanonicalResult['finish'] =>
  word === 'length' || word === 'tool_calls' || word === 'content_filter' ? word : 'stop'

export const handCompletion = (text: string): CanonicalResult => {
  const body = JSON.parse(text) as Body
  if (body.error) throw new Error(body.error.message)
  const choice = body.choices?.[0]
  const message = choice?.message
  if (message === undefined) throw new Error('no choices')
  return {
    ...emptyResult,
    text: (message.refusal || message.content || '').toWellFormed(),
    reasoning: message.reasoning_content ?? '',
    tool_calls: (message.tool_calls ?? []).map((call) => ({
      id: call.id,
      name: call.function.name,
      arguments: call.function.arguments.toWellFormed(),
    })),
    finish: finishOf(choice?.finish_reason),
    usage: usageOf(body.usage),
    model: body.model ?? null,
  }
}

export const handStream = (events: readonly string[]): CanonicalResult => {
  let text = ''
  let usage: MeteredUsage | null = null
  let finish: string | null = null
  let model: string | null = null
  for (const event of events) {
    const body = JSON.parse(event) as Body
    if (body.error) throw new Error(body.error.message)
    usage = usageOf(body.usage) ?? usage
    model = body.model ?? model
    const choice = body.choices?.[0]
    text += choice?.delta?.content ?? ''
    finish = choice?.finish_reason ?? finish
  }
  return { ...emptyResult, text: text.toWellFormed(), finish: finishOf(finish), usage, model }
}

export const handEmbeddings = (text: string): CanonicalResult => {
  const body = JSON.parse(text) as {
    data: { index: number; embedding: number[] }[]
    model: string
    usage: Counts
  }
  const embeddings = body.data.toSorted((a, b) => a.index - b.index).map(({ embedding }) => embedding)
  for (const vector of embeddings) {
    if (vector.length !== embeddings[0]?.length || !vector.every(Number.isFinite))
      throw new Error('bad vector')
  }
  return { ...emptyResult, embeddings, usage: usageOf(body.usage), model: body.model }
}
