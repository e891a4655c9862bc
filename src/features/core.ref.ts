import type { Spender } from '../accounts/budget-checks.ts'
import type { Admission } from '../engine/runs/admission.ts'
import type { Database } from '../infra/database/database.ts'
import type { Egress } from '../infra/egress/egress-port.ts'
import type { SealedText } from '../infra/secrets/envelope.ts'
import type { MasterKeys } from '../infra/secrets/master-keys.ts'
import type { Scrubber } from '../infra/secrets/scrubber.ts'
import type { ModelGateway } from '../models/ports/call-ports.ts'
import type { Log } from '../state/ports/log.ts'
import type { RunEntry } from '../state/ports/tracer.ts'
import type { JobData } from '../state/run-request.ts'
import type { Json } from '../state/runtime-state.ts'
import { defineRef } from './definitions.ts'

/** The handles of what the core provides to features, and of what the core uses where a feature provides it. */

/** The database of the API: what an admin changes by it is logged. */
export const databaseRef = defineRef<Database>('core.database')
/** The database of the worker, for loops. */
export const workerDatabaseRef = defineRef<Database>('core.worker-database')
/** The log of the process. */
export const logRef = defineRef<Log>('core.log')
/** The only way to addresses that come from data. */
export const egressRef = defineRef<Egress>('core.egress')
/** What secrets are sealed with. */
export const masterKeysRef = defineRef<MasterKeys>('core.master-keys')
/** Redacts every secret that is added. */
export const scrubberRef = defineRef<Scrubber>('core.scrubber')

/** All models of the registry, on behalf of any caller. */
export const modelGatewayRef = defineRef<Pick<ModelGateway, 'ask' | 'list'>>('core.model-gateway')
/** Counts what is about to start; throws `budget_exhausted` (detail.retry_after_s). Runs are checked by `submit`. */
export const budgetCheckRef = defineRef<(spender: Spender) => Promise<void>>('core.budget-check')

/** Runs on behalf of a business. */
export type RunSubmission = {
  /** Throws `invalid_request` for a request that could not be submitted now. */
  check(businessId: string, request: JobData): Promise<void>
  /** Throws what `BusinessApi.submit` throws. */
  submit(businessId: string, request: JobData, key?: string, entry?: RunEntry): Promise<Admission>
}
/** See `RunSubmission`. */
export const runSubmissionRef = defineRef<RunSubmission>('core.run-submission')

/** A message to another agent, as a claim of it has it. */
export type PushedMessage = {
  type: string
  webhook_id: string
  run_id: string | null
  created_at: Date
  metadata: Record<string, Json> | null
  result: { error: { message: string } | null } | null
  question: string | null
}
/** The row with the address, protocol and credentials of a push to another agent. */
export type PushTarget = SealedText & { push_id: string; protocol: '1.0' | '0.3' }
/** How messages to other agents look on the wire. */
export type PushFormat = {
  toBody(message: PushedMessage & { push: PushTarget }): string
  /** Beside those of every webhook. Throws `secret_unreadable`. */
  toHeaders(
    businessId: string,
    push: PushTarget,
    keys: MasterKeys,
    addSecret: (secret: string) => void,
  ): Record<string, string>
}
/** See `PushFormat`. */
export const pushFormatRef = defineRef<PushFormat>('core.push-format')

/** How many messages to webhooks were given up. A feature provides it. */
export const deadWebhooksRef = defineRef<() => Promise<number>>('core.dead-webhooks')
/** Throws `invalid_request`, with a pointer to `field`, for an address that a business must not have called. */
export type CheckWebhookAddress = (businessId: string, url: string, field: string) => Promise<void>
/** A feature provides it. Without one, requests with addresses for webhooks are refused. */
export const webhookAddressRef = defineRef<CheckWebhookAddress>('core.webhook-address')
