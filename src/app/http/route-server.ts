import type { RouteServer } from '../../routes/route.ts'
import { readCaller } from './plumbing/auth.ts'
import { sendProblem } from './plumbing/error-responses.ts'
import type { OpenResponses } from './plumbing/open-responses.ts'
import { sendTexts, startStream } from './plumbing/sse.ts'
import { toEntry } from './runs.routes.ts'

/** What routes outside of this folder use of the server. */
export const createRouteServer = (open: OpenResponses, keepAliveMs: number, maxWaitMs: number) =>
  ({
    open,
    keepAliveMs,
    maxWaitMs,
    callerOf: readCaller,
    startStream,
    toEntry,
    sendProblem,
    sendTexts: (reply, events) => sendTexts(reply, events, open, keepAliveMs),
  }) satisfies RouteServer
