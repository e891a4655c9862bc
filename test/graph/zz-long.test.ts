import { test } from 'vitest'
import { memoryRun, reply, workOn } from '../support/memory-run.ts'
import { callTool, graphWith } from '../support/parts.ts'
test('long', async () => {
  const graph = await graphWith([callTool('look', ({ n }) => `r${n} ${'x'.repeat(300)}`)])
  const memory = memoryRun({ prompt: 'x', limits: { max_steps: 10000, timeout_ms: 600000 } })
  let last = performance.now()
  let nth = 0
  const models = { knows: () => true, describe: () => ({ name: 't', offline: true, base_url: null }), call: async () => {
    nth++
    if (nth % 300 === 0) { const t = performance.now(); console.log(nth*3, ((t - last) / 900).toFixed(2), 'ms/action', Math.round(process.memoryUsage().heapUsed/1e6)); last = t }
    return reply({ tool_calls: [{ name: 'look', arguments: { n: nth } }] })
  } }
  await workOn(graph, memory, { models })
}, 300000)
