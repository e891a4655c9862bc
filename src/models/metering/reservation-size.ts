import { toMoney } from '../../infra/lib/money.ts'
import type { KeyEntry, ModelEntry, Reservation } from '../ports/model-ports.ts'
import { toCostMicro } from './cost.ts'

/** The longest answer, in tokens, of a model without `max_output`. */
const defaultMaxOutput = 4096
const textlessCategories = new Set(['embedding', 'rerank'])

/** The tokens reserved for an answer: the requested maximum, else the model's, but no more than the key allows in a minute. */
export const sizeReservedAnswer = (
  model: Pick<ModelEntry, 'category' | 'max_output'>,
  tpm: number | null,
  prompt_tokens: number,
  requested: number | null = null,
): number => {
  if (textlessCategories.has(model.category)) return 0
  if (requested !== null) return requested
  const longest = model.max_output ?? defaultMaxOutput
  return Math.max(0, Math.min(longest, (tpm ?? Number.POSITIVE_INFINITY) - prompt_tokens))
}

/** The limit that refuses a reservation of this size even where nothing was used yet, in words; null: none does. */
export const findUndersizedLimit = (
  { tpm, daily_tokens, monthly_cost }: KeyEntry['limits'],
  { name, prices }: Pick<ModelEntry, 'name' | 'prices'>,
  estimate: Reservation['estimate'],
): string | null => {
  const tokens = estimate.prompt_tokens + estimate.completion_tokens
  const cost = toCostMicro(prices, { ...estimate, cached_tokens: 0 })
  const found =
    monthly_cost !== null && cost > BigInt(monthly_cost)
      ? ['monthly_cost', toMoney(BigInt(monthly_cost)), `${toMoney(cost)} ${prices?.currency}`]
      : daily_tokens !== null && tokens > daily_tokens
        ? ['daily_tokens', daily_tokens, `${tokens} tokens`]
        : tpm !== null && tokens > tpm
          ? ['tpm', tpm, `${tokens} tokens`]
          : null
  if (found === null) return null
  const [limit, allowed, reserved] = found
  return `${limit} ${allowed} is under the ${reserved} that one request to ${name} reserves: raise the limit, or set max_output of the model`
}

/** What the limits of a key never allow to the active models of its vendor, whatever the prompt; null: nothing. */
export const findLimitError = (
  limits: KeyEntry['limits'],
  vendorId: string,
  models: Iterable<ModelEntry>,
): string | null => {
  const errors = [...models]
    .filter(({ vendor, active }) => vendor.id === vendorId && active)
    .flatMap((model) => {
      const completion_tokens = sizeReservedAnswer(model, limits.tpm, 0)
      return findUndersizedLimit(limits, model, { prompt_tokens: 0, completion_tokens }) ?? []
    })
  return errors.length === 0 ? null : errors.join('; ')
}
