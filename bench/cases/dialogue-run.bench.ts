import type { Case, Variant } from '../case.ts'
import { openConnection } from '../support/http-connection.ts'
import type { Place } from '../support/place.ts'
import { servedBy, startApi } from '../support/served.ts'
import { latencies, median } from '../support/statistics.ts'

/** An API and a worker whose model writes its calls; gives what it answers to a prompt, so often: milliseconds. */
const openRuns = async ({ processes, config }: Place) => {
  const vendor = servedBy(await processes.start('dialogue-vendor-process', {}))
  const baseUrl = `http://127.0.0.1:${vendor.port}/v1`
  const served = { ...config, openai: { apiKey: 'sk-bench', baseUrl, model: 'fake', embeddingModel: 'none' } }
  const { port } = await startApi({ processes, config: served } as Place)
  const { status } = await fetch(
    `http://127.0.0.1:${port}/admin/v1/vendors/ven_settings/models/mod_settings`,
    {
      ...{ method: 'PATCH', headers: { 'content-type': 'application/json' }, body: '{"dialect":"xml"}' },
    },
  )
  if (status !== 200) throw new Error(`the dialect was answered with ${status}`)
  await processes.start('tool-worker-process', { config: served })
  const connection = await openConnection(port)
  return async (prompt: string, times: number): Promise<number[]> => {
    const ms: number[] = []
    while (ms.length < times) {
      const { body } = await connection.post('/v1/runs/wait', JSON.stringify({ prompt, user_id: 'u1' }))
      const { answer } = JSON.parse(body) as { answer: string }
      if (!(Number(answer) > 0)) throw new Error(`no milliseconds: ${body.slice(0, 1000)}`)
      ms.push(Number(answer))
    }
    return ms
  }
}

/** From the last word of a reply, at its vendor, to the start of its tool: the append of the decision is part of it. */
const firstTool =
  (prompt: string): Variant =>
  async (place) => {
    const run = await openRuns(place)
    await run(prompt, place.count(50))
    const ms = await run(prompt, place.count(300))
    return { ...latencies(ms), 'ms at best': Math.min(...ms) }
  }

/** From the last word of a reply to the next request at the vendor: the appends of eleven actions and two routings are part of it. */
const ten: Variant = async (place) => {
  const run = await openRuns(place)
  await run('bench-one', place.count(20))
  const ms = await run('bench-ten', place.count(10))
  return { 'seconds p50': median(ms) / 1000, 'seconds at most': Math.max(...ms) / 1000 }
}

const dialogueRunCase: Case = {
  about: 'runs whose model writes the language of the dialogue, over HTTP to a fake vendor, on Postgres',
  ours: {
    'the first tool after the end of a reply': firstTool('bench-one'),
    'the first tool after a reply that is cut at <result': firstTool('bench-cut'),
    'ten tools of a second in one <parallel>': ten,
  },
}

export default dialogueRunCase
