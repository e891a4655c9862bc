import type { PlanRound } from '../../../context/rounds.ts'
import type { ModelMessage, ModelTool } from '../../../state/ports/model-messages.ts'
import type { DialectName, ModelReply, ModelRequest } from '../../../state/ports/models.ts'
import type { DataFence, PromptText } from '../../../state/provenance.ts'
import type { Interpretation, Offer } from './interpret.ts'
import type { RoundMessages, RoundOptions } from './round-messages.ts'
import type { ReplyExchange } from './written-plans.ts'

/** What a model is asked beside its messages, where its reply ends, and the tokens that this takes beside them. */
export type DialectRequest = {
  instructions: PromptText
  tools?: ModelTool[]
  end?: NonNullable<ModelRequest['end']>
  tokens: number
}

/** A reply that goes back to the model: it was refused for these errors, or, without any, it did nothing but plan. */
export type ReplyRefusal = {
  reply: ModelReply
  read: Interpretation
  errors: readonly string[]
  fence: DataFence
}

/** A refused reply and what is said of it: as messages, and whole, as the action stores it. */
export type RefusedReply = { messages: ModelMessage[]; exchange: ReplyExchange }

/** How a planner and its model talk; all of it pure. What was decided is the same in each. */
export type Dialect = {
  name: DialectName
  buildRequest(offer: Offer): DialectRequest
  renderRound(round: PlanRound, options: RoundOptions): RoundMessages
  /** Reads a reply against the tools that there are, whether they are offered or not. */
  parseReply(reply: ModelReply, known: Offer): Interpretation
  renderRefusal(refusal: ReplyRefusal): RefusedReply
  /** What of streamed text is for the user; absent: all. Made for each attempt. */
  openStream?(onText: (text: string) => void): (chunk: string) => void
}
