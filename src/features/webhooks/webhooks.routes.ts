import {
  businessQuery,
  createIdParams,
  omitUndefined,
  pageSchema,
  plainPageQuery,
} from '../../routes/parameters.ts'
import { actionRoute, describeAdmin, handleOne } from '../../routes/resource-routes.ts'
import { type App, type RouteServer, respondsWith } from '../../routes/route.ts'
import { idSchema } from '../../state/run-request.ts'
import { defineRoutes } from '../definitions.ts'
import type { WebhookDeliveries } from './webhook-deliveries.ts'
import {
  deliveryStatusSchema,
  deliveryViewSchema,
  newWebhookSecretSchema,
  webhookSettingsChangeSchema,
  webhookSettingsViewSchema,
  webhookTypeSchema,
} from './webhook-schemas.ts'
import type { WebhookSettings } from './webhook-settings.ts'
import { webhooksRef } from './webhooks.ref.ts'

const webhooks = { path: '/admin/v1/webhooks', one: 'a webhook', many: 'webhooks' } as const

const businesses = {
  path: '/admin/v1/businesses',
  one: 'a business',
  many: 'webhooks',
  ids: ['BusinessWebhook', 'BusinessWebhooks'],
  remedy: 'POST /admin/v1/businesses creates it',
} as const

const listQuery = plainPageQuery.extend(businessQuery.shape).extend({
  run_id: idSchema.describe('Of this run only').optional(),
  type: webhookTypeSchema.describe('Of this type only').optional(),
  status: deliveryStatusSchema.describe('Of this status only').optional(),
})

/** Webhooks with what became of them, and the address and secrets of each business. */
export default defineRoutes({
  needs: { store: webhooksRef },
  add(app, { store }, server) {
    app.get(webhooks.path, {
      schema: { querystring: listQuery },
      config: describeAdmin(webhooks, 'listWebhooks', 'Lists webhooks, the latest first', {
        ...respondsWith(200, 'One page', pageSchema(deliveryViewSchema)),
      }),
      handler: ({ query: { limit, cursor, ...filter } }) =>
        store.list(filter, omitUndefined({ limit, cursor })),
    })
    app.get(`${webhooks.path}/:id`, {
      schema: { params: createIdParams('webhook') },
      config: describeAdmin(webhooks, 'getWebhook', 'Returns a webhook', {
        ...respondsWith(200, 'A webhook', deliveryViewSchema),
      }),
      handler: handleOne(webhooks, (_, id) => store.get(id)),
    })
    actionRoute(app, server, webhooks, {
      name: 'replay',
      summary: 'Sends a webhook again under the same id, delivered or not',
      response: deliveryViewSchema,
      run: (_, id) => store.replay(id),
    })
    businessRoutes(app, store.settings, store.ping, server)
  },
})

const businessRoutes = (
  app: App,
  settings: WebhookSettings,
  ping: WebhookDeliveries['ping'],
  server: RouteServer,
): void => {
  const path = `${businesses.path}/:id/webhook`
  const params = createIdParams('business')
  app.get(path, {
    schema: { params },
    config: describeAdmin(webhooks, 'getBusinessWebhook', 'Returns the settings of a business for webhooks', {
      ...respondsWith(200, 'The settings', webhookSettingsViewSchema),
    }),
    handler: handleOne(businesses, (_, id) => settings.get(id)),
  })
  app.patch(path, {
    schema: { params, body: webhookSettingsChangeSchema },
    config: describeAdmin(
      webhooks,
      'changeBusinessWebhook',
      'Changes the address of a business for webhooks; null clears it',
      { ...respondsWith(200, 'The settings', webhookSettingsViewSchema) },
    ),
    handler: handleOne(businesses, (_, id, { body }) => settings.change(id, omitUndefined(body as object))),
  })
  actionRoute(app, server, businesses, {
    name: 'webhook/rotate',
    id: 'rotateWebhookSecret',
    summary: 'Makes a new secret, returned only here; the one before signs beside it for 24 hours',
    response: newWebhookSecretSchema,
    problems: ['secret_unreadable'],
    run: (_, id) => settings.rotate(id),
  })
  actionRoute(app, server, businesses, {
    name: 'webhook/ping',
    id: 'pingWebhook',
    summary:
      'Sends a test message to the address of the business; GET /admin/v1/webhooks/{id} has its result',
    response: deliveryViewSchema,
    problems: ['invalid_request'],
    run: (_, id) => ping(id),
  })
}
