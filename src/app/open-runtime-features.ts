import type { Spender } from '../accounts/budget-checks.ts'
import type { BusinessRuns } from '../engine/runs/business-runs.ts'
import { pollJobNow } from '../engine/runs/waits.ts'
import { type CheckWebhookAddress, refuseWebhookAddress } from '../engine/runs/webhook-address.ts'
import * as core from '../features/core.ref.ts'
import type { Ref } from '../features/definitions.ts'
import { type FeatureSource, type Features, openFeatures, provide } from '../features/load-features.ts'
import type { FileService } from '../files/run-files.ts'
import { checkRequestNames } from '../graph/check-request.ts'
import type { GraphInfo } from '../graph/definitions.ts'
import type { Config } from '../infra/config/config.ts'
import { toIssuer } from '../infra/config/issuer.ts'
import type { MasterKeys } from '../infra/secrets/master-keys.ts'
import type { ModelRequests } from '../models/call/model-requests.ts'
import type { ModelGateway } from '../models/ports/call-ports.ts'
import type { ModelCaller, Registry } from '../models/ports/model-ports.ts'
import type { ModelProbes } from '../models/schemas/model-probe.ts'
import { MasonError } from '../state/errors.ts'
import type { Agents } from '../state/ports/agents.ts'
import type { MediaModels } from '../state/ports/media.ts'
import type { Models } from '../state/ports/models.ts'
import type { Sql } from '../state/ports/sql.ts'
import type { Drivers } from './open-drivers.ts'

type CoreParts = Drivers & {
  sources: readonly FeatureSource[]
  config: Config
  masterKeys: MasterKeys
  /** Made with the services of features. */
  graph(): GraphInfo
  models: Models
  modelGateway: ModelGateway
  requests: ModelRequests
  registry: Registry
  files: FileService
  checkBudgets(spender: Spender): Promise<void>
  checkWebhookAddress: CheckWebhookAddress
  runsOf(businessId: string): BusinessRuns
}

/** Opens the features of this process with what the core provides. */
export const openRuntimeFeatures = (parts: CoreParts): Promise<Features> =>
  openFeatures(parts.sources, [
    provide(core.databaseRef, parts.database),
    provide(core.workerDatabaseRef, parts.workerDatabase),
    ...(parts.executorDatabase ? [provide(core.executorDatabaseRef, parts.executorDatabase)] : []),
    provide(core.configRef, parts.config),
    provide(core.clockRef, parts.clock),
    provide(core.queuesRef, parts.queues),
    provide(core.hintsRef, parts.hints),
    provide(core.logRef, parts.log),
    provide(core.egressRef, parts.egress),
    provide(core.masterKeysRef, parts.masterKeys),
    provide(core.scrubberRef, parts.scrubber),
    provide(core.modelGatewayRef, parts.modelGateway),
    provide(core.modelRequestsRef, parts.requests),
    provide(core.registryRef, parts.registry),
    provide(core.registryViewRef, () => parts.registry.view),
    provide(core.tracerRef, parts.tracer),
    provide(core.fileServiceRef, parts.files),
    provide(core.budgetCheckRef, parts.checkBudgets),
    provide(core.serverAddressRef, {
      origin: toIssuer(parts.config),
      publicUrl: parts.config.publicUrl ?? null,
    }),
    provide(core.businessRunsRef, parts.runsOf),
    provide(core.graphRef, parts.graph),
    provide(core.jobPollRef, async (refId) => void (await pollJobNow(parts.database, refId))),
    provide(core.runSubmissionRef, {
      async check(businessId, request) {
        checkRequestNames(request, parts.graph(), parts.models)
        if (request.webhook_url !== undefined)
          await parts.checkWebhookAddress(businessId, request.webhook_url, 'webhook_url')
      },
      submit: (businessId, ...submission) => parts.runsOf(businessId).submit(...submission),
    }),
  ])

/** Checks addresses by the feature that sends webhooks; without one, each is refused. */
export const createWebhookCheck =
  (find: (ref: Ref<CheckWebhookAddress>) => CheckWebhookAddress | null): CheckWebhookAddress =>
  (...address) =>
    (find(core.webhookAddressRef) ?? refuseWebhookAddress)(...address)

/** How many messages to webhooks were given up; 0 without the feature that sends them. */
export const countDeadWebhooks = async ({ find }: Pick<Features, 'find'>): Promise<number> =>
  (await find(core.deadWebhooksRef)?.()) ?? 0

const refuseFor = (what: string) => (): never => {
  throw new MasonError('not_found', `this server has no ${what}`, {
    remedy: 'run it with the feature that has one',
  })
}
const refuseMedia = refuseFor('caller of media models')
const noMedia: MediaModels = { has: () => false, make: refuseMedia, submit: refuseMedia, poll: refuseMedia }
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
