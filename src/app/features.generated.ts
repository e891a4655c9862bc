import type { FeatureSource } from '../features/load-features.ts'

/** Each folder of src/features with its files, loaded when they are needed; `npm run features` writes this file. */
export const featureSources: readonly FeatureSource[] = [
  {
    folder: 'src/features/schedules',
    files: {
      'feature.ts': () => import('../features/schedules/feature.ts'),
      'schedule-firing.service.ts': () => import('../features/schedules/schedule-firing.service.ts'),
      'schedules.loop.ts': () => import('../features/schedules/schedules.loop.ts'),
      'schedules.metrics.ts': () => import('../features/schedules/schedules.metrics.ts'),
      'schedules.resource.ts': () => import('../features/schedules/schedules.resource.ts'),
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
