import type { Config } from '../../src/infra/config/config.ts'

export const ways = ['killed', 'blocked', 'out of memory'] as const
export type Way = (typeof ways)[number]

export type PoisonTask = { config: Config; concurrency: number }
/** A beat comes as long as the event loop turns. */
export type PoisonMessage = { event: 'ready' } | { event: 'beat' }

/** The prompt of a run that takes down its worker. */
export const deadlyPrompt = (way: Way): string => `Be deadly: ${way}.`
export const wayOf = (text: string): Way | undefined => ways.find((way) => text.includes(deadlyPrompt(way)))

/** Who admits a job of this business is killed while doing so. */
export const deadlyBusiness = 'deadly-business'
