import type { BusinessRuns, JobAdmissions } from '../engine/runs/business-runs.ts'
import { pollJobNow } from '../engine/runs/waits.ts'
import { type CheckWebhookAddress, refuseWebhookAddress } from '../engine/runs/webhook-address.ts'
import * as core from '../features/core.ref.ts'
import { type FeatureSource, type Features, openFeatures, provide } from '../features/load-features.ts'
import { checkRequestNames } from '../graph/check-request.ts'
import type { GraphInfo } from '../graph/definitions.ts'
import type { Config } from '../infra/config/config.ts'
import { toIssuer } from '../infra/config/issuer.ts'
import { MasonError } from '../state/errors.ts'
import type { Agents } from '../state/ports/agents.ts'
import type { Models } from '../state/ports/models.ts'
import type { Sql } from '../state/ports/sql.ts'
import type { Drivers } from './open-drivers.ts'
import type { ModelLayer } from './open-models.ts'

type CoreParts = Drivers & {
  sources: readonly FeatureSource[]
  config: Config
  layer: ModelLayer
  models: Models
  /** Made with the services of features. */
  graph(): GraphInfo
  runsOf(businessId: string): BusinessRuns
  jobsOf(businessId: string): JobAdmissions
}

/** Opens the features of this process with what the core provides, and what the core asks of them. */
export const openRuntimeFeatures = async (parts: CoreParts) => {
  const { config, layer, models, graph, runsOf } = parts
  const checkBudgets = async (spender: core.Spender): Promise<void> =>
    features.find(core.budgetsRef)?.check(spender)
  const checkWebhookAddress: CheckWebhookAddress = (...address) =>
    (features.find(core.webhookAddressRef) ?? refuseWebhookAddress)(...address)
  const features: Features = await openFeatures(parts.sources, [
    provide(core.databaseRef, parts.database),
    provide(core.workerDatabaseRef, parts.workerDatabase),
    ...(parts.executorDatabase ? [provide(core.executorDatabaseRef, parts.executorDatabase)] : []),
    provide(core.configRef, config),
    provide(core.clockRef, parts.clock),
    provide(core.queuesRef, parts.queues),
    provide(core.hintsRef, parts.hints),
    provide(core.logRef, parts.log),
    provide(core.egressRef, parts.egress),
    provide(core.masterKeysRef, layer.masterKeys),
    provide(core.scrubberRef, parts.scrubber),
    provide(core.modelGatewayRef, layer.service),
    provide(core.registryRef, layer.registry),
    provide(core.registryViewRef, () => layer.registry.view),
    provide(core.tracerRef, parts.tracer),
    provide(core.backlogRef, parts.readBacklog),
    provide(core.budgetCheckRef, checkBudgets),
    provide(core.ledgerFlushRef, layer.flushLedger),
    provide(core.serverAddressRef, { origin: toIssuer(config), publicUrl: config.publicUrl ?? null }),
    provide(core.businessRunsRef, runsOf),
    provide(core.jobAdmissionsRef, parts.jobsOf),
    provide(core.graphRef, graph),
    provide(core.jobPollRef, async (refId) => void (await pollJobNow(parts.database, refId))),
    provide(core.runSubmissionRef, {
      async check(businessId, request) {
        checkRequestNames(request, graph(), models)
        if (request.webhook_url !== undefined)
          await checkWebhookAddress(businessId, request.webhook_url, 'webhook_url')
      },
      submit: (businessId, ...submission) => runsOf(businessId).submit(...submission),
    }),
  ])
  return {
    ...features,
    checkBudgets,
    checkWebhookAddress,
    /** Which limit on costs a run has reached by now; null: none. */
    findReachedBudget: async (caller: core.Spender) =>
      (await features.find(core.budgetsRef)?.findReached(caller)) ?? null,
  }
}

const refuse = (): never => {
  throw new MasonError('not_found', 'this server has no client for other agents', {
    remedy: 'run it with the feature that has one',
  })
}
const noAgents: Agents = {
  list: async () => [],
  send: async () => refuse(),
  wait: refuse,
  read: refuse,
}

/** The other agents that a run may call; none without the feature for them. */
export const findAgents = ({ find }: Pick<Features, 'find'>, sql: Sql, businessId: string): Agents =>
  find(core.runAgentsRef)?.(sql, businessId) ?? noAgents
