import { sample } from './sample.ts'
import type { FakeReply, FakeRequest, FakeScript } from './types.ts'

/** What a role without a script gets: JSON for a schema, a finish for the planner, a word for the rest. */
const builtInReply = ({ role, schema, body }: FakeRequest): FakeReply => {
  if (schema !== undefined) return { text: JSON.stringify(sample(schema)) }
  if (body.response_format !== undefined) return { text: '{}' }
  return { text: role === 'planner' ? 'Done.' : 'ok' }
}

/** The reply of a script to one request. */
export const replyOf = async (script: FakeScript, request: FakeRequest): Promise<FakeReply> => {
  if (typeof script === 'function') return (await script(request)) ?? builtInReply(request)
  const steps = script[request.role] ?? script['*'] ?? []
  return steps[Math.min(request.nth, steps.length) - 1] ?? builtInReply(request)
}
