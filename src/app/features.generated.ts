import type { FeatureDefinition } from '../features/definitions.ts'
import type { FeatureSource } from '../features/load-features.ts'
import payments from '../features/payments/feature.ts'

const files: FeatureSource['files'] = {
  'a2a/a2a.routes.ts': () => import('../features/a2a/a2a.routes.ts'),
  'a2a/agent-cards.routes.ts': () => import('../features/a2a/agent-cards.routes.ts'),
  'a2a/agent-cards.service.ts': () => import('../features/a2a/agent-cards.service.ts'),
  'a2a/agent-pushes.service.ts': () => import('../features/a2a/agent-pushes.service.ts'),
  'a2a/call-agent.tool.ts': () => import('../features/a2a/call-agent.tool.ts'),
  'a2a/card-signing.service.ts': () => import('../features/a2a/card-signing.service.ts'),
  'a2a/feature.ts': () => import('../features/a2a/feature.ts'),
  'a2a/payment-agents.service.ts': () => import('../features/a2a/payment-agents.service.ts'),
  'a2a/remote-agents.routes.ts': () => import('../features/a2a/remote-agents.routes.ts'),
  'a2a/remote-agents.service.ts': () => import('../features/a2a/remote-agents.service.ts'),
  'a2a/render-push.service.ts': () => import('../features/a2a/render-push.service.ts'),
  'a2a/run-agents.service.ts': () => import('../features/a2a/run-agents.service.ts'),
  'a2a/secrets-changed.service.ts': () => import('../features/a2a/secrets-changed.service.ts'),
  'budgets/budgets.routes.ts': () => import('../features/budgets/budgets.routes.ts'),
  'budgets/budgets.service.ts': () => import('../features/budgets/budgets.service.ts'),
  'budgets/feature.ts': () => import('../features/budgets/feature.ts'),
  'bulk/bulk.loop.ts': () => import('../features/bulk/bulk.loop.ts'),
  'bulk/bulk.retention.ts': () => import('../features/bulk/bulk.retention.ts'),
  'bulk/bulk.routes.ts': () => import('../features/bulk/bulk.routes.ts'),
  'bulk/feature.ts': () => import('../features/bulk/feature.ts'),
  'bulk/jobs.service.ts': () => import('../features/bulk/jobs.service.ts'),
  'calculate/calculate.tool.ts': () => import('../features/calculate/calculate.tool.ts'),
  'calculate/feature.ts': () => import('../features/calculate/feature.ts'),
  'documents/documents.reader.ts': () => import('../features/documents/documents.reader.ts'),
  'documents/feature.ts': () => import('../features/documents/feature.ts'),
  'http-request/feature.ts': () => import('../features/http-request/feature.ts'),
  'http-request/http-request.tool.ts': () => import('../features/http-request/http-request.tool.ts'),
  'http-request/http.run-service.ts': () => import('../features/http-request/http.run-service.ts'),
  'intake/feature.ts': () => import('../features/intake/feature.ts'),
  'intake/intake.loop.ts': () => import('../features/intake/intake.loop.ts'),
  'intake/intake.retention.ts': () => import('../features/intake/intake.retention.ts'),
  'intake/jobs.service.ts': () => import('../features/intake/jobs.service.ts'),
  'intake/rejected-jobs.routes.ts': () => import('../features/intake/rejected-jobs.routes.ts'),
  'intake/rejected-jobs.service.ts': () => import('../features/intake/rejected-jobs.service.ts'),
  'media/edit-image.tool.ts': () => import('../features/media/edit-image.tool.ts'),
  'media/feature.ts': () => import('../features/media/feature.ts'),
  'media/generate-image.tool.ts': () => import('../features/media/generate-image.tool.ts'),
  'media/generate-video.tool.ts': () => import('../features/media/generate-video.tool.ts'),
  'media/media-models.service.ts': () => import('../features/media/media-models.service.ts'),
  'media/speak.tool.ts': () => import('../features/media/speak.tool.ts'),
  'media/transcribe.tool.ts': () => import('../features/media/transcribe.tool.ts'),
  'model-probes/feature.ts': () => import('../features/model-probes/feature.ts'),
  'model-probes/model-probes.service.ts': () => import('../features/model-probes/model-probes.service.ts'),
  'offline-model/feature.ts': () => import('../features/offline-model/feature.ts'),
  'offline-model/in-process-model.service.ts': () =>
    import('../features/offline-model/in-process-model.service.ts'),
  'openai-endpoint/chat.routes.ts': () => import('../features/openai-endpoint/chat.routes.ts'),
  'openai-endpoint/embeddings.routes.ts': () => import('../features/openai-endpoint/embeddings.routes.ts'),
  'openai-endpoint/feature.ts': () => import('../features/openai-endpoint/feature.ts'),
  'openai-endpoint/media.routes.ts': () => import('../features/openai-endpoint/media.routes.ts'),
  'openai-endpoint/models.routes.ts': () => import('../features/openai-endpoint/models.routes.ts'),
  'overview/all-runs.service.ts': () => import('../features/overview/all-runs.service.ts'),
  'overview/feature.ts': () => import('../features/overview/feature.ts'),
  'overview/overview.routes.ts': () => import('../features/overview/overview.routes.ts'),
  'payments/ap2.command.ts': () => import('../features/payments/ap2.command.ts'),
  'payments/consent.routes.ts': () => import('../features/payments/consent.routes.ts'),
  'payments/consent.service.ts': () => import('../features/payments/consent.service.ts'),
  'payments/executor.service.ts': () => import('../features/payments/executor.service.ts'),
  'payments/feature.ts': () => import('../features/payments/feature.ts'),
  'payments/mandate-problem.service.ts': () => import('../features/payments/mandate-problem.service.ts'),
  'payments/mandates.run-service.ts': () => import('../features/payments/mandates.run-service.ts'),
  'payments/open-mandates.routes.ts': () => import('../features/payments/open-mandates.routes.ts'),
  'payments/payment-decisions.routes.ts': () => import('../features/payments/payment-decisions.routes.ts'),
  'payments/payments-api.service.ts': () => import('../features/payments/payments-api.service.ts'),
  'payments/payments.command.ts': () => import('../features/payments/payments.command.ts'),
  'payments/payments.doctor.ts': () => import('../features/payments/payments.doctor.ts'),
  'payments/payments.keys.ts': () => import('../features/payments/payments.keys.ts'),
  'payments/payments.process.ts': () => import('../features/payments/payments.process.ts'),
  'payments/payments.retention.ts': () => import('../features/payments/payments.retention.ts'),
  'payments/payments.routes.ts': () => import('../features/payments/payments.routes.ts'),
  'payments/payments.run-service.ts': () => import('../features/payments/payments.run-service.ts'),
  'payments/providers.routes.ts': () => import('../features/payments/providers.routes.ts'),
  'payments/providers.service.ts': () => import('../features/payments/providers.service.ts'),
  'payments/seal-for-executor.service.ts': () => import('../features/payments/seal-for-executor.service.ts'),
  'payments/secret-answers.service.ts': () => import('../features/payments/secret-answers.service.ts'),
  'payments/tools/answer-challenge.tool.ts': () =>
    import('../features/payments/tools/answer-challenge.tool.ts'),
  'payments/tools/check-receipt.tool.ts': () => import('../features/payments/tools/check-receipt.tool.ts'),
  'payments/tools/create-payment-mandate.tool.ts': () =>
    import('../features/payments/tools/create-payment-mandate.tool.ts'),
  'payments/tools/initiate-payment.tool.ts': () =>
    import('../features/payments/tools/initiate-payment.tool.ts'),
  'payments/tools/pay-by-open-mandate.tool.ts': () =>
    import('../features/payments/tools/pay-by-open-mandate.tool.ts'),
  'payments/tools/propose-open-mandate.tool.ts': () =>
    import('../features/payments/tools/propose-open-mandate.tool.ts'),
  'payments/tools/request-open-mandate.tool.ts': () =>
    import('../features/payments/tools/request-open-mandate.tool.ts'),
  'payments/tools/request-user-authorization.tool.ts': () =>
    import('../features/payments/tools/request-user-authorization.tool.ts'),
  'payments/tools/send-payment-mandate.tool.ts': () =>
    import('../features/payments/tools/send-payment-mandate.tool.ts'),
  'payments/tools/use-open-mandate.tool.ts': () =>
    import('../features/payments/tools/use-open-mandate.tool.ts'),
  'payments/trusted-keys.routes.ts': () => import('../features/payments/trusted-keys.routes.ts'),
  'payments/trusted-keys.service.ts': () => import('../features/payments/trusted-keys.service.ts'),
  'payments/unrepeatable-work.service.ts': () => import('../features/payments/unrepeatable-work.service.ts'),
  'prometheus/feature.ts': () => import('../features/prometheus/feature.ts'),
  'prometheus/metrics.service.ts': () => import('../features/prometheus/metrics.service.ts'),
  'response-formats/feature.ts': () => import('../features/response-formats/feature.ts'),
  'response-formats/response-formats.service.ts': () =>
    import('../features/response-formats/response-formats.service.ts'),
  'schedules/feature.ts': () => import('../features/schedules/feature.ts'),
  'schedules/schedule-firing.service.ts': () => import('../features/schedules/schedule-firing.service.ts'),
  'schedules/schedules.loop.ts': () => import('../features/schedules/schedules.loop.ts'),
  'schedules/schedules.metrics.ts': () => import('../features/schedules/schedules.metrics.ts'),
  'schedules/schedules.resource.ts': () => import('../features/schedules/schedules.resource.ts'),
  'shopping/choose-cart.tool.ts': () => import('../features/shopping/choose-cart.tool.ts'),
  'shopping/create-intent-mandate.tool.ts': () =>
    import('../features/shopping/create-intent-mandate.tool.ts'),
  'shopping/feature.ts': () => import('../features/shopping/feature.ts'),
  'shopping/find-item.tool.ts': () => import('../features/shopping/find-item.tool.ts'),
  'shopping/find-products.tool.ts': () => import('../features/shopping/find-products.tool.ts'),
  'shopping/get-payment-credential-token.tool.ts': () =>
    import('../features/shopping/get-payment-credential-token.tool.ts'),
  'shopping/get-payment-methods.tool.ts': () => import('../features/shopping/get-payment-methods.tool.ts'),
  'shopping/get-shipping-address.tool.ts': () => import('../features/shopping/get-shipping-address.tool.ts'),
  'shopping/update-cart.tool.ts': () => import('../features/shopping/update-cart.tool.ts'),
  'tables/feature.ts': () => import('../features/tables/feature.ts'),
  'tables/query-table.tool.ts': () => import('../features/tables/query-table.tool.ts'),
  'tables/run-tables.service.ts': () => import('../features/tables/run-tables.service.ts'),
  'tables/tables.reader.ts': () => import('../features/tables/tables.reader.ts'),
  'tables/tables.run-service.ts': () => import('../features/tables/tables.run-service.ts'),
  'telemetry/feature.ts': () => import('../features/telemetry/feature.ts'),
  'telemetry/tracing.service.ts': () => import('../features/telemetry/tracing.service.ts'),
  'trajectories/feature.ts': () => import('../features/trajectories/feature.ts'),
  'trajectories/trajectories.routes.ts': () => import('../features/trajectories/trajectories.routes.ts'),
  'trajectories/trajectory.command.ts': () => import('../features/trajectories/trajectory.command.ts'),
  'usage/feature.ts': () => import('../features/usage/feature.ts'),
  'usage/usage.routes.ts': () => import('../features/usage/usage.routes.ts'),
  'user-memory/feature.ts': () => import('../features/user-memory/feature.ts'),
  'user-memory/user-memory.service.ts': () => import('../features/user-memory/user-memory.service.ts'),
  'webhooks/dead-webhooks.service.ts': () => import('../features/webhooks/dead-webhooks.service.ts'),
  'webhooks/feature.ts': () => import('../features/webhooks/feature.ts'),
  'webhooks/webhook-address.service.ts': () => import('../features/webhooks/webhook-address.service.ts'),
  'webhooks/webhook-sender.service.ts': () => import('../features/webhooks/webhook-sender.service.ts'),
  'webhooks/webhook-store.service.ts': () => import('../features/webhooks/webhook-store.service.ts'),
  'webhooks/webhooks.command.ts': () => import('../features/webhooks/webhooks.command.ts'),
  'webhooks/webhooks.loop.ts': () => import('../features/webhooks/webhooks.loop.ts'),
  'webhooks/webhooks.metrics.ts': () => import('../features/webhooks/webhooks.metrics.ts'),
  'webhooks/webhooks.retention.ts': () => import('../features/webhooks/webhooks.retention.ts'),
  'webhooks/webhooks.routes.ts': () => import('../features/webhooks/webhooks.routes.ts'),
}

const toId = (path: string): string => path.slice(0, path.indexOf('/'))
const ids = [...new Set(Object.keys(files).map(toId))]

/** Each folder of src/features with its files, loaded when they are needed; `npm run features` writes this file. */
export const featureSources: readonly FeatureSource[] = ids.map((id) => {
  const own = Object.entries(files).filter(([path]) => toId(path) === id)
  const names = own.map(([path, load]) => [path.slice(id.length + 1), load] as const)
  return { folder: `src/features/${id}`, files: Object.fromEntries(names) }
})

/** Those that add to the settings of a process. */
export const features: readonly FeatureDefinition[] = [payments]
