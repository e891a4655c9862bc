import type { Services } from '../../state/ports/services.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { VisitNote } from '../../state/ports/tracer.ts'
import type { RunClaim } from './claim.ts'

/** How each service is made for a claimed run: once a claim, and those that ask models once more for each visit. */
export type ServiceFactories = {
  [Name in keyof Services]: (run: RunClaim, sql: Sql, visit?: VisitNote) => Services[Name]
}

const askingModels = ['models', 'embeddings', 'media', 'memories'] as const

/** The services of one run. */
export const createServices = (factories: ServiceFactories, claim: RunClaim, sql: Sql): Services =>
  Object.fromEntries(Object.entries(factories).map(([name, create]) => [name, create(claim, sql)])) as never

/** The same for one visit, on whose behalf models are asked. No `AsyncLocalStorage`: in Node.js 20 and 22 every promise would pay for it. */
export const createVisitServices =
  (factories: ServiceFactories, claim: RunClaim, sql: Sql) =>
  (services: Services, visit: VisitNote): Services => ({
    ...services,
    ...Object.fromEntries(askingModels.map((name) => [name, factories[name](claim, sql, visit)])),
  })
