import { MasonError } from '../state/errors.ts'
import type { Agents, RemoteAgent } from '../state/ports/agents.ts'

/** The agent of a role: the one that is named, or the only one. Throws with their names. */
export const chooseAgent = async (
  agents: Agents,
  role: 'merchant' | 'credentials-provider',
  named: string | null | undefined,
): Promise<RemoteAgent> => {
  const able = await agents.list(role)
  const matching = able.filter(({ name }) => named == null || name === named)
  const [chosen] = matching
  if (chosen && matching.length === 1) return chosen
  const names = able.map(({ name }) => name).join(', ')
  if (able.length === 0)
    throw new MasonError('invalid_request', `there is no agent with the role ${role}`, {
      remedy: 'tell the user that an admin must add one',
    })
  throw new MasonError(
    'invalid_request',
    named == null ? `there are several agents with the role ${role}` : `"${named}" is no ${role}`,
    { remedy: `name one of these as agent: ${names}` },
  )
}
