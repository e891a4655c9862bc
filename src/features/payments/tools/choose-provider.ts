import { MasonError } from '../../../state/errors.ts'
import type { Payments } from '../ports/run-payments.ref.ts'

type Kind = Awaited<ReturnType<Payments['listProviders']>>[number]['kind']

/** The id of the provider that a call names, or of the only one, of a kind. Throws `invalid_request` that lists them. */
export const chooseProvider = async (
  payments: Pick<Payments, 'listProviders'>,
  named: string | undefined,
  kind?: Kind,
): Promise<string> => {
  const providers = (await payments.listProviders()).filter((one) => kind === undefined || one.kind === kind)
  const matching = providers.filter(({ name }) => named === undefined || name === named)
  const [chosen] = matching
  if (chosen && matching.length === 1) return chosen.id
  throw new MasonError('invalid_request', 'it is not clear by whom to pay', {
    remedy:
      providers.length > 0
        ? `name one of these as provider: ${providers.map(({ name }) => name).join(', ')}`
        : 'get the cart from an agent of a merchant: there is no provider for any other',
  })
}
