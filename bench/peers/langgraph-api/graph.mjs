// The no-op run of Mason as a LangGraph graph: eight nodes visited, each adding one action.
import { Annotation, END, START, StateGraph } from '@langchain/langgraph'

const State = Annotation.Root({
  actions: Annotation({ reducer: (all, more) => [...all, ...more], default: () => [] }),
})
const visit = (node) => () => ({ actions: [{ node, summary: `${node} has nothing to do` }] })
const called = ({ actions }) => (actions.some(({ node }) => node === 'calculate') ? 'answer' : 'calculate')

export const graph = new StateGraph(State)
  .addNode('load-session', visit('load-session'))
  .addNode('user-context', visit('user-context'))
  .addNode('planner', visit('planner'))
  .addNode('calculate', visit('calculate'))
  .addNode('reflection', visit('reflection'))
  .addNode('answer', visit('answer'))
  .addNode('end', visit('end'))
  .addEdge(START, 'load-session')
  .addEdge('load-session', 'user-context')
  .addEdge('user-context', 'planner')
  .addConditionalEdges('planner', called, ['calculate', 'answer'])
  .addEdge('calculate', 'reflection')
  .addEdge('reflection', 'planner')
  .addEdge('answer', 'end')
  .addEdge('end', END)
  .compile()
