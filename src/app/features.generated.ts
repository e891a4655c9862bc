import type { FeatureSource } from '../features/load-features.ts'

const filesOf: Readonly<Record<string, FeatureSource['files']>> = {
  a2a: {
    'a2a.routes.ts': () => import('../features/a2a/a2a.routes.ts'),
    'agent-cards.routes.ts': () => import('../features/a2a/agent-cards.routes.ts'),
    'agent-cards.service.ts': () => import('../features/a2a/agent-cards.service.ts'),
    'agent-pushes.service.ts': () => import('../features/a2a/agent-pushes.service.ts'),
    'call-agent.tool.ts': () => import('../features/a2a/call-agent.tool.ts'),
    'card-signing.service.ts': () => import('../features/a2a/card-signing.service.ts'),
    'feature.ts': () => import('../features/a2a/feature.ts'),
    'payment-agents.service.ts': () => import('../features/a2a/payment-agents.service.ts'),
    'remote-agents.routes.ts': () => import('../features/a2a/remote-agents.routes.ts'),
    'remote-agents.service.ts': () => import('../features/a2a/remote-agents.service.ts'),
    'render-push.service.ts': () => import('../features/a2a/render-push.service.ts'),
    'run-agents.service.ts': () => import('../features/a2a/run-agents.service.ts'),
    'secrets-changed.service.ts': () => import('../features/a2a/secrets-changed.service.ts'),
  },
  budgets: {
    'budgets.routes.ts': () => import('../features/budgets/budgets.routes.ts'),
    'budgets.service.ts': () => import('../features/budgets/budgets.service.ts'),
    'feature.ts': () => import('../features/budgets/feature.ts'),
  },
  bulk: {
    'bulk.loop.ts': () => import('../features/bulk/bulk.loop.ts'),
    'bulk.retention.ts': () => import('../features/bulk/bulk.retention.ts'),
    'bulk.routes.ts': () => import('../features/bulk/bulk.routes.ts'),
    'feature.ts': () => import('../features/bulk/feature.ts'),
    'jobs.service.ts': () => import('../features/bulk/jobs.service.ts'),
  },
  calculate: {
    'calculate.tool.ts': () => import('../features/calculate/calculate.tool.ts'),
    'feature.ts': () => import('../features/calculate/feature.ts'),
  },
  documents: {
    'documents.reader.ts': () => import('../features/documents/documents.reader.ts'),
    'feature.ts': () => import('../features/documents/feature.ts'),
  },
  'http-request': {
    'feature.ts': () => import('../features/http-request/feature.ts'),
    'http-request.tool.ts': () => import('../features/http-request/http-request.tool.ts'),
    'http.run-service.ts': () => import('../features/http-request/http.run-service.ts'),
  },
  intake: {
    'feature.ts': () => import('../features/intake/feature.ts'),
    'intake.loop.ts': () => import('../features/intake/intake.loop.ts'),
    'intake.retention.ts': () => import('../features/intake/intake.retention.ts'),
    'jobs.service.ts': () => import('../features/intake/jobs.service.ts'),
    'rejected-jobs.routes.ts': () => import('../features/intake/rejected-jobs.routes.ts'),
    'rejected-jobs.service.ts': () => import('../features/intake/rejected-jobs.service.ts'),
  },
  media: {
    'edit-image.tool.ts': () => import('../features/media/edit-image.tool.ts'),
    'feature.ts': () => import('../features/media/feature.ts'),
    'generate-image.tool.ts': () => import('../features/media/generate-image.tool.ts'),
    'generate-video.tool.ts': () => import('../features/media/generate-video.tool.ts'),
    'media-models.service.ts': () => import('../features/media/media-models.service.ts'),
    'speak.tool.ts': () => import('../features/media/speak.tool.ts'),
    'transcribe.tool.ts': () => import('../features/media/transcribe.tool.ts'),
  },
  'model-probes': {
    'feature.ts': () => import('../features/model-probes/feature.ts'),
    'model-probes.service.ts': () => import('../features/model-probes/model-probes.service.ts'),
  },
  'offline-model': {
    'feature.ts': () => import('../features/offline-model/feature.ts'),
    'in-process-model.service.ts': () => import('../features/offline-model/in-process-model.service.ts'),
  },
  'openai-endpoint': {
    'chat.routes.ts': () => import('../features/openai-endpoint/chat.routes.ts'),
    'embeddings.routes.ts': () => import('../features/openai-endpoint/embeddings.routes.ts'),
    'feature.ts': () => import('../features/openai-endpoint/feature.ts'),
    'media.routes.ts': () => import('../features/openai-endpoint/media.routes.ts'),
    'models.routes.ts': () => import('../features/openai-endpoint/models.routes.ts'),
  },
  overview: {
    'all-runs.service.ts': () => import('../features/overview/all-runs.service.ts'),
    'feature.ts': () => import('../features/overview/feature.ts'),
    'overview.routes.ts': () => import('../features/overview/overview.routes.ts'),
  },
  payments: {
    'ap2.command.ts': () => import('../features/payments/ap2.command.ts'),
    'consent.routes.ts': () => import('../features/payments/consent.routes.ts'),
    'consent.service.ts': () => import('../features/payments/consent.service.ts'),
    'executor.service.ts': () => import('../features/payments/executor.service.ts'),
    'feature.ts': () => import('../features/payments/feature.ts'),
    'mandate-problem.service.ts': () => import('../features/payments/mandate-problem.service.ts'),
    'mandates.run-service.ts': () => import('../features/payments/mandates.run-service.ts'),
    'open-mandates.routes.ts': () => import('../features/payments/open-mandates.routes.ts'),
    'payment-decisions.routes.ts': () => import('../features/payments/payment-decisions.routes.ts'),
    'payments-api.service.ts': () => import('../features/payments/payments-api.service.ts'),
    'payments.command.ts': () => import('../features/payments/payments.command.ts'),
    'payments.doctor.ts': () => import('../features/payments/payments.doctor.ts'),
    'payments.keys.ts': () => import('../features/payments/payments.keys.ts'),
    'payments.process.ts': () => import('../features/payments/payments.process.ts'),
    'payments.retention.ts': () => import('../features/payments/payments.retention.ts'),
    'payments.routes.ts': () => import('../features/payments/payments.routes.ts'),
    'payments.run-service.ts': () => import('../features/payments/payments.run-service.ts'),
    'providers.routes.ts': () => import('../features/payments/providers.routes.ts'),
    'providers.service.ts': () => import('../features/payments/providers.service.ts'),
    'seal-for-executor.service.ts': () => import('../features/payments/seal-for-executor.service.ts'),
    'secret-answers.service.ts': () => import('../features/payments/secret-answers.service.ts'),
    'tools/answer-challenge.tool.ts': () => import('../features/payments/tools/answer-challenge.tool.ts'),
    'tools/check-receipt.tool.ts': () => import('../features/payments/tools/check-receipt.tool.ts'),
    'tools/create-payment-mandate.tool.ts': () =>
      import('../features/payments/tools/create-payment-mandate.tool.ts'),
    'tools/initiate-payment.tool.ts': () => import('../features/payments/tools/initiate-payment.tool.ts'),
    'tools/pay-by-open-mandate.tool.ts': () =>
      import('../features/payments/tools/pay-by-open-mandate.tool.ts'),
    'tools/propose-open-mandate.tool.ts': () =>
      import('../features/payments/tools/propose-open-mandate.tool.ts'),
    'tools/request-open-mandate.tool.ts': () =>
      import('../features/payments/tools/request-open-mandate.tool.ts'),
    'tools/request-user-authorization.tool.ts': () =>
      import('../features/payments/tools/request-user-authorization.tool.ts'),
    'tools/send-payment-mandate.tool.ts': () =>
      import('../features/payments/tools/send-payment-mandate.tool.ts'),
    'tools/use-open-mandate.tool.ts': () => import('../features/payments/tools/use-open-mandate.tool.ts'),
    'trusted-keys.routes.ts': () => import('../features/payments/trusted-keys.routes.ts'),
    'trusted-keys.service.ts': () => import('../features/payments/trusted-keys.service.ts'),
    'unrepeatable-work.service.ts': () => import('../features/payments/unrepeatable-work.service.ts'),
  },
  prometheus: {
    'feature.ts': () => import('../features/prometheus/feature.ts'),
    'metrics.service.ts': () => import('../features/prometheus/metrics.service.ts'),
  },
  'response-formats': {
    'feature.ts': () => import('../features/response-formats/feature.ts'),
    'response-formats.service.ts': () => import('../features/response-formats/response-formats.service.ts'),
  },
  schedules: {
    'feature.ts': () => import('../features/schedules/feature.ts'),
    'schedule-firing.service.ts': () => import('../features/schedules/schedule-firing.service.ts'),
    'schedules.loop.ts': () => import('../features/schedules/schedules.loop.ts'),
    'schedules.metrics.ts': () => import('../features/schedules/schedules.metrics.ts'),
    'schedules.resource.ts': () => import('../features/schedules/schedules.resource.ts'),
  },
  shopping: {
    'choose-cart.tool.ts': () => import('../features/shopping/choose-cart.tool.ts'),
    'create-intent-mandate.tool.ts': () => import('../features/shopping/create-intent-mandate.tool.ts'),
    'feature.ts': () => import('../features/shopping/feature.ts'),
    'find-item.tool.ts': () => import('../features/shopping/find-item.tool.ts'),
    'find-products.tool.ts': () => import('../features/shopping/find-products.tool.ts'),
    'get-payment-credential-token.tool.ts': () =>
      import('../features/shopping/get-payment-credential-token.tool.ts'),
    'get-payment-methods.tool.ts': () => import('../features/shopping/get-payment-methods.tool.ts'),
    'get-shipping-address.tool.ts': () => import('../features/shopping/get-shipping-address.tool.ts'),
    'update-cart.tool.ts': () => import('../features/shopping/update-cart.tool.ts'),
  },
  tables: {
    'feature.ts': () => import('../features/tables/feature.ts'),
    'query-table.tool.ts': () => import('../features/tables/query-table.tool.ts'),
    'run-tables.service.ts': () => import('../features/tables/run-tables.service.ts'),
    'tables.reader.ts': () => import('../features/tables/tables.reader.ts'),
    'tables.run-service.ts': () => import('../features/tables/tables.run-service.ts'),
  },
  telemetry: {
    'feature.ts': () => import('../features/telemetry/feature.ts'),
    'tracing.service.ts': () => import('../features/telemetry/tracing.service.ts'),
  },
  trajectories: {
    'feature.ts': () => import('../features/trajectories/feature.ts'),
    'trajectories.routes.ts': () => import('../features/trajectories/trajectories.routes.ts'),
    'trajectory.command.ts': () => import('../features/trajectories/trajectory.command.ts'),
  },
  usage: {
    'feature.ts': () => import('../features/usage/feature.ts'),
    'usage.routes.ts': () => import('../features/usage/usage.routes.ts'),
  },
  'user-memory': {
    'feature.ts': () => import('../features/user-memory/feature.ts'),
    'user-memory.service.ts': () => import('../features/user-memory/user-memory.service.ts'),
  },
  webhooks: {
    'dead-webhooks.service.ts': () => import('../features/webhooks/dead-webhooks.service.ts'),
    'feature.ts': () => import('../features/webhooks/feature.ts'),
    'webhook-address.service.ts': () => import('../features/webhooks/webhook-address.service.ts'),
    'webhook-sender.service.ts': () => import('../features/webhooks/webhook-sender.service.ts'),
    'webhook-store.service.ts': () => import('../features/webhooks/webhook-store.service.ts'),
    'webhooks.command.ts': () => import('../features/webhooks/webhooks.command.ts'),
    'webhooks.loop.ts': () => import('../features/webhooks/webhooks.loop.ts'),
    'webhooks.metrics.ts': () => import('../features/webhooks/webhooks.metrics.ts'),
    'webhooks.retention.ts': () => import('../features/webhooks/webhooks.retention.ts'),
    'webhooks.routes.ts': () => import('../features/webhooks/webhooks.routes.ts'),
  },
}

/** Each folder of src/features with its files, loaded when they are needed; `npm run features` writes this file. */
export const featureSources: readonly FeatureSource[] = Object.entries(filesOf).map(([id, files]) => ({
  folder: `src/features/${id}`,
  files,
}))
