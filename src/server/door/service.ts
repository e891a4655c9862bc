import type { Runtime } from '../../runtime-api.ts'

/** The call path as the door uses it. */
export type ModelService = Runtime['modelService']
type Ask = Parameters<ModelService['ask']>

export type Wanted = Ask[0]
export type ModelAsk = Ask[1]
export type AskMessage = ModelAsk['messages'][number]
export type Caller = Ask[2]
export type Answered = Awaited<ReturnType<ModelService['ask']>>

/** Stands in the ledger and in the header `x-mason-role` of what comes in by the door. */
export const doorRole = 'door'
