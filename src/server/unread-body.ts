import type { IncomingMessage } from 'node:http'

const mostMs = 500
const mostBytes = 1024 * 1024

/**
 * Reads what is left of a body that nobody wanted (401, 404, 405 …), within limits, before the answer goes out: closing a
 * connection with bytes unread resets it, and the reset overtakes the answer.
 */
export const dropUnreadBody = (request: IncomingMessage): Promise<void> =>
  new Promise((resolve) => {
    // an injected request has no such field, and no connection
    if (request.complete !== false || request.destroyed) return resolve()
    let bytes = 0
    const take = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes > mostBytes) over()
    }
    const over = (): void => {
      clearTimeout(timer)
      request.off('data', take).off('end', over).off('close', over)
      resolve()
    }
    const timer = setTimeout(over, mostMs)
    request.on('data', take).once('end', over).once('close', over)
  })
