// `node main.mjs '{"databaseUrl", "nodes"}'`: DBOS in one process with an HTTP server, and a workflow in Postgres with a durable
// step for each node. Reports its port over IPC.
import { createServer } from 'node:http'
import { DBOS } from '@dbos-inc/dbos-sdk'

const { databaseUrl, nodes } = JSON.parse(process.argv[2])

const run = DBOS.registerWorkflow(
  async () => {
    const actions = []
    for (const node of nodes)
      actions.push(
        await DBOS.runStep(async () => ({ node, summary: `${node} has nothing to do` }), { name: node }),
      )
    return { actions }
  },
  { name: 'run' },
)
DBOS.setConfig({
  name: 'mason-bench',
  systemDatabaseUrl: databaseUrl,
  logLevel: 'error',
  runAdminServer: false,
})
await DBOS.launch()

const server = createServer(async (request, response) => {
  for await (const _ of request);
  try {
    const text = JSON.stringify(await run())
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    response.end(text)
  } catch (error) {
    response.writeHead(500).end(String(error))
  }
})
server.listen(0, '127.0.0.1', () =>
  process.send({ port: server.address().port, pids: { service: process.pid } }),
)
// the parent process is gone
process.once('disconnect', () => process.exit(1))
