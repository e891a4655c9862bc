import {
  egressRef,
  logRef,
  masterKeysRef,
  renderPushRef,
  scrubberRef,
  workerDatabaseRef,
} from '../core.ref.ts'
import { defineService, optional } from '../definitions.ts'
import { createWebhookSender } from './webhook-sender.ts'
import { webhookSenderRef } from './webhooks.ref.ts'

export default defineService({
  provides: webhookSenderRef,
  needs: {
    database: workerDatabaseRef,
    egress: egressRef,
    masterKeys: masterKeysRef,
    scrubber: scrubberRef,
    renderPush: optional(renderPushRef),
    log: logRef,
  },
  start: createWebhookSender,
})
