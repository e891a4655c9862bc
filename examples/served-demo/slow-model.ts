import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export type SlowModel = { baseUrl: string; close(): void }

type Message = { role: string; content: string | null }
type ChatRequest = { messages: Message[]; tools?: unknown[] }

const statements = [
  "SELECT region, round(sum(quantity * unit_price), 2) AS revenue FROM orders WHERE status = 'completed' GROUP BY region ORDER BY 2 DESC",
  "SELECT count(*) AS returned FROM orders WHERE status = 'returned'",
]

/** The first row of a result of query_table. */
const firstRow = ({ content }: Message): string[] =>
  /^\| -.*\n\| (.*) \|$/m.exec(content ?? '')?.[1]?.split(' | ') ?? []

/** What a real model would answer to the question of the demo: first two queries, then what they found. */
const answer = ({ messages, tools }: ChatRequest): Record<string, unknown> => {
  if (!tools) return { content: JSON.stringify({ scenario: 'orders', task_goal: 'Answer the question' }) }
  const results = messages.filter(({ role }) => role === 'tool')
  const [ranking, count] = results.map(firstRow)
  if (ranking && count) {
    const revenue = Number(ranking[1]).toLocaleString('en-US')
    return {
      content: `**${ranking[0]}** has the highest revenue, ${revenue}; **${count[0]}** orders were returned.`,
    }
  }
  const tool_calls = statements.map((sql, at) => ({
    id: `call_${at}`,
    type: 'function',
    function: { name: 'query_table', arguments: JSON.stringify({ sql }) },
  }))
  return { content: 'I query the orders.', tool_calls }
}

/** A scripted model behind HTTP, as slow as a real one, so that a run lasts long enough to lose its worker. */
export const startSlowModel = async (delayMs: number): Promise<SlowModel> => {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    await sleep(delayMs)
    const message = answer(JSON.parse(Buffer.concat(chunks).toString()) as ChatRequest)
    const finish_reason = message.tool_calls ? 'tool_calls' : 'stop'
    const choice = { index: 0, message: { role: 'assistant', ...message }, finish_reason }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify({ id: 'reply', object: 'chat.completion', model: 'scripted', choices: [choice] }),
    )
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    close: () => void server.close().closeAllConnections(),
  }
}
