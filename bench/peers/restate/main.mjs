// `node main.mjs '{"folder", "nodes"}'`: a Restate server with its own log in `folder`, and in this process a service whose handler
// takes a durable step for each node. Reports the port of its HTTP ingress over IPC. Its settings are those that it has by itself.
import { spawn } from 'node:child_process'
import { createServer } from 'node:http2'
import { fileURLToPath } from 'node:url'
import { freePort } from '../free-port.mjs'

// what its SDK takes from Node 22
Promise.withResolvers ??= () => {
  let settle
  const promise = new Promise((resolve, reject) => {
    settle = { resolve, reject }
  })
  return { promise, ...settle }
}

// no line for each run, as of the others
process.env.RESTATE_LOGGING = 'ERROR'
const restate = await import('@restatedev/restate-sdk')

const { folder, nodes } = JSON.parse(process.argv[2])

const runs = restate.service({
  name: 'runs',
  handlers: {
    async wait(ctx) {
      const actions = []
      for (const node of nodes)
        actions.push(await ctx.run(node, () => ({ node, summary: `${node} has nothing to do` })))
      return { actions }
    },
  },
})
const service = createServer(restate.createEndpointHandler({ services: [runs] }))
await new Promise((resolve) => service.listen(0, '127.0.0.1', resolve))

const [ingress, admin, fabric] = [await freePort(), await freePort(), await freePort()]
const server = spawn(
  // not by its wrapper, whose processor time would be measured in its place
  fileURLToPath(import.meta.resolve(`@restatedev/restate-server-linux-${process.arch}/bin/restate-server`)),
  ['--no-logo'],
  {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'ignore'],
    env: {
      ...process.env,
      RESTATE_BASE_DIR: folder,
      RESTATE_NODE_NAME: 'bench',
      RESTATE_LISTEN_MODE: 'tcp',
      RESTATE_BIND_IP: '127.0.0.1',
      RESTATE_BIND_PORT: `${fabric}`,
      RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${fabric}`,
      RESTATE_INGRESS__BIND_PORT: `${ingress}`,
      RESTATE_ADMIN__BIND_PORT: `${admin}`,
      RESTATE_LOG_FILTER: 'error',
      DO_NOT_TRACK: '1',
    },
  },
)
// the parent process is gone
process.once('disconnect', () => process.exit(1))
process.once('exit', () => server.kill('SIGKILL'))
server.once('exit', () => process.exit(1))

const post = (port, path, body) =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
/** Until it is up. */
const untilOk = async (send) => {
  for (let tries = 0; tries < 300; tries++) {
    const answer = await send().catch(() => null)
    if (answer?.ok) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('the Restate server did not start')
}
await untilOk(() => post(admin, '/deployments', { uri: `http://127.0.0.1:${service.address().port}` }))
await untilOk(() => post(ingress, '/runs/wait', {}))
process.send({ port: ingress, pids: { service: process.pid, server: server.pid } })
