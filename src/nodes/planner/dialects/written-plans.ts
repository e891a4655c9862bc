import type { PlanRound } from '../../../context/rounds.ts'
import { parseBlobResult } from '../../../state/inline-blobs.ts'
import type { Blobs } from '../../../state/ports/blobs.ts'
import type { DialectName } from '../../../state/ports/models.ts'
import type { ReadonlyAction } from '../../../state/turn.ts'

/** What a model wrote, and what was put back; `dialect` is that of both where the action was decided in the other one. */
export type ReplyExchange = { wrote: string; put_back: string; dialect?: DialectName }

/** What a model wrote in the language in one step: the reply, and what was refused before it. */
export type WrittenPlan = { wrote: string; exchange: readonly ReplyExchange[] }

/** The written plans that are in blobs. */
export type WrittenPlans = ReadonlyMap<ReadonlyAction, WrittenPlan>

/** Blobs never change: each is read once while its action lives. */
const knownPlans = new WeakMap<ReadonlyAction, WrittenPlan>()

const isXml = ({ dialect = 'xml' }: ReplyExchange): boolean => dialect === 'xml'

/** What was written in a result; null where the action was decided natively, or its reply is in a blob. */
export const readWrittenPlan = ({
  dialect,
  wrote,
  exchange,
}: ReadonlyAction['result']): WrittenPlan | null =>
  dialect === 'xml' && typeof wrote === 'string'
    ? {
        wrote,
        exchange: Array.isArray(exchange) ? (exchange as unknown as ReplyExchange[]).filter(isXml) : [],
      }
    : null

/** The written plans of these rounds that are in blobs. One whose bytes are gone is left out. */
export const readWrittenPlans = async (
  rounds: readonly PlanRound[],
  blobs: Pick<Blobs, 'read'>,
): Promise<WrittenPlans> => {
  const plans = new Map<ReadonlyAction, WrittenPlan>()
  for (const { plan } of rounds) {
    const { dialect, wrote, blob } = plan.result
    if (dialect !== 'xml' || wrote !== undefined || typeof blob !== 'string') continue
    const bytes = knownPlans.has(plan) ? null : await blobs.read(blob)
    const result = bytes && parseBlobResult(Buffer.from(bytes).toString('utf8'))
    const written = knownPlans.get(plan) ?? (result && readWrittenPlan(result))
    if (!written) continue
    knownPlans.set(plan, written)
    plans.set(plan, written)
  }
  return plans
}
