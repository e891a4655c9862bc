import type { FeatureSource } from '../features/load-features.ts'

/** Each folder of src/features with its files, loaded when they are needed; `npm run features` writes this file. */
export const featureSources: readonly FeatureSource[] = [
  {
    folder: 'src/features/a2a',
    files: {
      'a2a.routes.ts': () => import('../features/a2a/a2a.routes.ts'),
      'agent-cards.routes.ts': () => import('../features/a2a/agent-cards.routes.ts'),
      'agent-cards.service.ts': () => import('../features/a2a/agent-cards.service.ts'),
      'agent-pushes.service.ts': () => import('../features/a2a/agent-pushes.service.ts'),
      'card-signing.service.ts': () => import('../features/a2a/card-signing.service.ts'),
      'feature.ts': () => import('../features/a2a/feature.ts'),
      'payment-agents.service.ts': () => import('../features/a2a/payment-agents.service.ts'),
      'remote-agents.routes.ts': () => import('../features/a2a/remote-agents.routes.ts'),
      'remote-agents.service.ts': () => import('../features/a2a/remote-agents.service.ts'),
      'render-push.service.ts': () => import('../features/a2a/render-push.service.ts'),
      'run-agents.service.ts': () => import('../features/a2a/run-agents.service.ts'),
      'secrets-changed.service.ts': () => import('../features/a2a/secrets-changed.service.ts'),
    },
  },
  {
    folder: 'src/features/schedules',
    files: {
      'feature.ts': () => import('../features/schedules/feature.ts'),
      'schedule-firing.service.ts': () => import('../features/schedules/schedule-firing.service.ts'),
      'schedule-store.service.ts': () => import('../features/schedules/schedule-store.service.ts'),
      'schedules.loop.ts': () => import('../features/schedules/schedules.loop.ts'),
      'schedules.metrics.ts': () => import('../features/schedules/schedules.metrics.ts'),
      'schedules.routes.ts': () => import('../features/schedules/schedules.routes.ts'),
    },
  },
  {
    folder: 'src/features/webhooks',
    files: {
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
  },
]
