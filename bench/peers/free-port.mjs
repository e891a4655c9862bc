import { createServer } from 'node:net'

/** A port of the loopback that no server has, for peers that cannot choose one and report it. */
export const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
