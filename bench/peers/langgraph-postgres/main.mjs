// `node main.mjs '{"databaseUrl", "actions", "bytes"}'`: a loop of three nodes, each of which adds one action to a
// channel; `durability: 'sync'` keeps each step before the next begins, as Mason does. Tells its milliseconds over IPC.
import { randomBytes } from 'node:crypto'
import { Annotation, END, START, StateGraph } from '@langchain/langgraph'
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres'

const { databaseUrl, actions, bytes } = JSON.parse(process.argv[2])

const State = Annotation.Root({
  actions: Annotation({ reducer: (all, more) => [...all, ...more], default: () => [] }),
})
const visit = (node) => () => ({ actions: [{ node, text: randomBytes((bytes * 3) / 4).toString('base64') }] })
const nextOf = (node) => (state) => (state.actions.length >= actions ? END : node)

const checkpointer = PostgresSaver.fromConnString(databaseUrl)
await checkpointer.setup()
const graph = new StateGraph(State)
  .addNode('planner', visit('planner'))
  .addNode('tool', visit('tool'))
  .addNode('reflection', visit('reflection'))
  .addEdge(START, 'planner')
  .addConditionalEdges('planner', nextOf('tool'), ['tool', END])
  .addConditionalEdges('tool', nextOf('reflection'), ['reflection', END])
  .addConditionalEdges('reflection', nextOf('planner'), ['planner', END])
  .compile({ checkpointer })

const since = performance.now()
const state = await graph.invoke(
  { actions: [] },
  { configurable: { thread_id: 'one' }, recursionLimit: actions + 10, durability: 'sync' },
)
const ms = performance.now() - since
if (state.actions.length !== actions) throw new Error(`${state.actions.length} actions instead of ${actions}`)
await checkpointer.end()
process.send({ ms }, () => process.exit(0))
