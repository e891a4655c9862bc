import { MasonError } from '../../../state/errors.ts'
import type { LimitLine, UsableMandate } from '../ports/run-mandates.ref.ts'

/** The limits of an open mandate as a text. */
export const toLimitsText = (limits: readonly LimitLine[]): string =>
  limits.map(({ name, text: limit }) => `${name}: ${limit}`).join('\n')

/** The open mandate that is named, or the only one. Throws `invalid_request` that lists all with their limits. */
export const chooseMandate = <Mandate extends UsableMandate>(
  usable: readonly Mandate[],
  named: string | undefined,
): Mandate => {
  const matching = usable.filter(({ id }) => named === undefined || id === named)
  const [chosen] = matching
  if (chosen && matching.length === 1) return chosen
  const listed = usable.map(({ id, limits }) => `${id}\n${toLimitsText(limits)}`).join('\n\n')
  throw new MasonError('invalid_request', 'it is not clear which open mandate is meant', {
    remedy: `name one of these as mandate_id: ${listed || 'there is none, so propose one or ask the user to pay'}`,
  })
}
