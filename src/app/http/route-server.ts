import type { RouteServer } from '../../routes/route.ts'
import { resolveBusinessId } from './plumbing/auth.ts'
import { sendProblem } from './plumbing/error-responses.ts'
import type { OpenResponses } from './plumbing/open-responses.ts'
import { sendTexts } from './plumbing/sse.ts'
import { toEntry } from './runs.routes.ts'

/** What routes outside of this folder use of the server. */
export const createRouteServer = (open: OpenResponses, keepAliveMs: number) =>
  ({
    open,
    readBusinessId: ({ principal }, named) =>
      resolveBusinessId(principal ?? { kind: 'anonymous' }, named, null),
    nameCaller: ({ principal }) =>
      principal?.kind === 'token' ? (principal.token_id ?? 'token') : (principal?.kind ?? 'anonymous'),
    toEntry,
    sendProblem,
    sendTexts: (reply, events) => sendTexts(reply, events, open, keepAliveMs),
  }) satisfies RouteServer
