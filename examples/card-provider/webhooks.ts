import { createHmac, randomUUID } from 'node:crypto'
import type { Operation } from './books.ts'

export type WebhookSettings = {
  url: string | null
  /** The nth event is sent after the nth of these, round and round: unequal ones change the order. */
  delays_ms: number[]
  copies: number
}

const maxTries = 20

/** Sends signed events (https://www.standardwebhooks.com) until they are taken, each under one id. Those unsent end with the process. */
export const createWebhooks = (settings: () => WebhookSettings, secret: string) => {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  let count = 0

  const send = async (url: string, id: string, body: string, tries = 1): Promise<void> => {
    const time = Math.floor(Date.now() / 1000)
    const signature = createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')
    const headers = {
      'content-type': 'application/json',
      ...{ 'webhook-id': id, 'webhook-timestamp': String(time), 'webhook-signature': `v1,${signature}` },
    }
    const taken = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(10_000) })
      .then((response) => response.ok)
      .catch(() => false)
    if (!taken && tries < maxTries) setTimeout(() => void send(url, id, body, tries + 1), 1000)
  }

  return (operation: Operation): void => {
    const { url, delays_ms, copies } = settings()
    if (url === null) return
    const { hash: _, at, ...data } = operation
    const body = JSON.stringify({ type: 'operation.updated', timestamp: new Date(at).toISOString(), data })
    const id = `evt_${randomUUID().replaceAll('-', '')}`
    const delay = delays_ms[count++ % delays_ms.length] ?? 0
    for (let copy = 0; copy < copies; copy++) setTimeout(() => void send(url, id, body), delay)
  }
}
