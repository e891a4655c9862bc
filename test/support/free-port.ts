import { createServer } from 'node:net'

/** A port for a process that is started again at it: below the range of outgoing connections, so that none takes it meanwhile. */
export const freePort = async (): Promise<number> => {
  const port = 20_000 + Math.floor(Math.random() * 12_000)
  const server = createServer()
  const isFree = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
  })
  if (!isFree) return freePort()
  await new Promise((resolve) => server.close(resolve))
  return port
}
