import type { BusinessRuns, JobAdmissions } from '../engine/runs/business-runs.ts'
import { pollJobNow } from '../engine/runs/waits.ts'
import { type CheckWebhookAddress, refuseWebhookAddress } from '../engine/runs/webhook-address.ts'
import * as core from '../features/core.ref.ts'
import type { FeatureSource } from '../features/definition-files.ts'
import { type Features, openFeatures, provide } from '../features/load-features.ts'
import type { FileService } from '../files/run-files.ts'
import { checkRequestNames } from '../graph/check-request.ts'
import type { GraphInfo } from '../graph/definitions.ts'
import type { Config } from '../infra/config/config.ts'
import { toIssuer } from '../infra/config/issuer.ts'
import type { ModelCaller } from '../models/ports/model-ports.ts'
import type { ModelProbes } from '../models/schemas/model-probe.ts'
import { MasonError } from '../state/errors.ts'
import type { Agents } from '../state/ports/agents.ts'
import type { MediaModels } from '../state/ports/media.ts'
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
  files: FileService
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
    provide(core.modelRequestsRef, layer.requests),
    provide(core.registryRef, layer.registry),
    provide(core.registryViewRef, () => layer.registry.view),
    provide(core.tracerRef, parts.tracer),
    provide(core.backlogRef, parts.readBacklog),
    provide(core.fileServiceRef, parts.files),
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

const refuseFor = (what: string) => (): never => {
  throw new MasonError('not_found', `this server has no ${what}`, {
    remedy: 'run it with the feature that has one',
  })
}
const refuseMedia = refuseFor('caller of media models')
const noMedia: MediaModels = {
  has: () => false,
  make: refuseMedia,
  submit: refuseMedia,
  poll: refuseMedia,
}
const refuseProbe = refuseFor('probes of models')
const refuse = refuseFor('client for other agents')
const noAgents: Agents = {
  list: async () => [],
  send: async () => refuse(),
  wait: refuse,
  read: refuse,
}

/** Test calls by admins; each is refused without the feature for them. */
export const findModelProbes = ({ find }: Pick<Features, 'find'>): ModelProbes =>
  find(core.modelProbesRef) ?? { probe: refuseProbe, test: refuseProbe }

/** Models that make or read media; none without the feature for them. */
export const findMediaModels = ({ find }: Pick<Features, 'find'>, caller: ModelCaller): MediaModels =>
  find(core.mediaModelsRef)?.(caller) ?? noMedia

/** The other agents that a run may call; none without the feature for them. */
export const findAgents = ({ find }: Pick<Features, 'find'>, sql: Sql, businessId: string): Agents =>
  find(core.runAgentsRef)?.(sql, businessId) ?? noAgents
