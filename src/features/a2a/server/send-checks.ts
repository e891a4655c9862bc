import type { AgentCard } from '@a2a-js/sdk'
import type { FindDataProblem } from '../../core.ref.ts'
import { malformed } from './errors.ts'
import { checkRequired, hasAp2 } from './extensions.ts'
import { checkMessage } from './messages.ts'

/** What the checks of a message need of its request. */
export type SendCheck = {
  card: AgentCard
  /** The extensions that it asks for. */
  extensions: readonly string[]
  /** Of an agent that speaks AP2: what is wrong with the data of a part. Null: data are passed as they are. */
  findMandateProblem: FindDataProblem | null
}

/**
 * Throws where what is sent lacks an extension that the card requires, or has a message that is invalid as it came. Of its data,
 * mandates alone are looked at.
 */
export const checkSend = (
  { card, extensions, findMandateProblem }: SendCheck,
  params: unknown,
  version: '1.0' | '0.3',
): void => {
  checkRequired(card, extensions)
  checkMessage(params, version)
  if (!findMandateProblem || !hasAp2(card)) return
  const { parts } = (params as { message: { parts: { data?: unknown }[] } }).message
  for (const [at, { data }] of parts.entries()) {
    const problem = findMandateProblem(data)
    if (problem !== null) throw malformed(`message.parts[${at}].data${problem}`)
  }
}
