import type { AgentCard } from '@a2a-js/sdk'
import { isJsonObject } from '../../../infra/lib/json-text.ts'
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

type DataPart = { data?: unknown; metadata?: { data_part_compat?: unknown } | null }
/** The data of a part as the SDK reads it: clients of 0.3 wrap what is not an object, and say so. */
const readPartData = ({ data, metadata }: DataPart, version: '1.0' | '0.3'): unknown => {
  const isWrapped = version === '0.3' && metadata?.data_part_compat === true
  return isWrapped && isJsonObject(data) && 'value' in data ? data.value : data
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
  const { parts } = (params as { message: { parts: DataPart[] } }).message
  for (const [at, part] of parts.entries()) {
    const problem = findMandateProblem(readPartData(part, version))
    if (problem !== null) throw malformed(`message.parts[${at}].data${problem}`)
  }
}
