// `node main.mjs '{"folder"}'`: the open LangGraph API server with the no-op graph on a free port, reported over IPC. It
// keeps its store (in memory, written to `folder` now and then) and runs ten jobs at once, as `langgraphjs dev` does.
import { fileURLToPath } from 'node:url'
import { startServer } from '@langchain/langgraph-api/server'
import { freePort } from '../free-port.mjs'

const { folder } = JSON.parse(process.argv[2])

const port = await freePort()
const graph = `${fileURLToPath(new URL('graph.mjs', import.meta.url))}:graph`
await startServer({ port, nWorkers: 10, host: '127.0.0.1', cwd: folder, graphs: { agent: graph } })
process.send({ port })
// the parent process is gone
process.once('disconnect', () => process.exit(1))
