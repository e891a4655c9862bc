// biome-ignore-all lint/suspicious/noEmptyInterface: a build without features has none
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'
import type { Models } from './models.ts'

/**
 * The services of a run that features open, each by its `*.run-service.ts`; the feature declares the type here as a port does.
 *
 * @example
 * ```ts
 * import 'mason-runtime/features'
 *
 * declare module 'mason-runtime/features' {
 *   interface FeatureServices {
 *     board: { read(): string }
 *   }
 * }
 * ```
 */
export interface FeatureServices {}

/**
 * The services of a run, injected beside its state. These three are there in every visit. Each further port adds its own
 * in its file (`declare module './services.ts'`), and a node or tool that uses it names it in `needs`.
 *
 * @example
 * ```ts
 * import type { Services } from 'mason-runtime'
 *
 * const now = ({ clock }: Pick<Services, 'clock'>): Date => clock.now()
 * ```
 */
export interface Services extends FeatureServices {
  models: Models
  clock: Clock
  log: Log
}

/** The services that need no declaration. */
export const commonServices = ['models', 'clock', 'log'] as const satisfies readonly (keyof Services)[]

type CommonService = (typeof commonServices)[number]

/** A service that a node or tool declares in `needs`. */
export type ServiceName = Exclude<keyof Services, CommonService>

/** What a node or tool without `needs` may use: the services from before there were declarations. */
export const defaultNeeds = ['files', 'blobs', 'users', 'memories'] as const satisfies readonly ServiceName[]

/** One of `defaultNeeds`. */
export type DefaultNeed = (typeof defaultNeeds)[number]

/** The services of one visit: the common ones and those that its node or tool needs. */
export type VisitServices<Needs extends ServiceName> = Pick<Services, CommonService> & Pick<Services, Needs>
