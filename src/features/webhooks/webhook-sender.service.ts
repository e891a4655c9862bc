import {
  egressRef,
  logRef,
  masterKeysRef,
  pushFormatRef,
  scrubberRef,
  workerDatabaseRef,
} from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { createWebhookSender } from './webhook-sender.ts'
import { webhookSenderRef } from './webhooks.ref.ts'

export default defineService({
  provides: webhookSenderRef,
  needs: {
    database: workerDatabaseRef,
    egress: egressRef,
    masterKeys: masterKeysRef,
    scrubber: scrubberRef,
    pushFormat: pushFormatRef,
    log: logRef,
  },
  start: createWebhookSender,
})
