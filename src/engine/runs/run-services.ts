import type { Services } from '../../state/ports/services.ts'
import type { Sql } from '../../state/ports/sql.ts'
import type { RunClaim } from './claim.ts'

/** How each service is made for a claimed run; once a claim. */
export type ServiceFactories = { [Name in keyof Services]: (run: RunClaim, sql: Sql) => Services[Name] }

/** The services of one run. */
export const createServices = (factories: ServiceFactories, claim: RunClaim, sql: Sql): Services =>
  Object.fromEntries(Object.entries(factories).map(([name, create]) => [name, create(claim, sql)])) as never
