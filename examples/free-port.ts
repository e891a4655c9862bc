import { createServer } from 'node:net'

const [lowest, count] = [20_000, 12_000]
let drawn = Math.floor(Math.random() * count)

/**
 * A port on loopback for a process that is started later, or again at it: below the range of outgoing connections, of which one could
 * take it meanwhile, and never twice, since a client may keep connections to what was there before.
 */
export const freePort = async (): Promise<number> => {
  const port = lowest + (drawn++ % count)
  const server = createServer()
  const isFree = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
  })
  if (!isFree) return freePort()
  await new Promise((resolve) => server.close(resolve))
  return port
}
