import type { RouteServer } from '../../../routes/route.ts'
import type { BusinessApi, Runtime } from '../../api.ts'
import type { Principal } from './auth.ts'
import type { BodyReservation } from './body-budget.ts'
import type { OpenResponses } from './open-responses.ts'

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal | null
    /** Rejects once the caller may do this no more; null for routes without a role. */
    checkAgain: (() => Promise<void>) | null
    /** The caller is who is signed in to the console. */
    usesCookie: boolean
    /** The memory that its body holds. */
    bodyMemory: BodyReservation
    /** The API of the business it acts for; set before the handler of every route that has a role. */
    business: BusinessApi
  }
}

/** What routes work with. */
export type ServerContext = RouteServer & {
  runtime: Runtime
  open: OpenResponses
  keepAliveMs: number
  /** How long a call of the OpenAI-compatible endpoint waits between its tries, in all. */
  maxWaitMs: number
}
