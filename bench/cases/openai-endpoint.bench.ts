import type { Case, Figures, Variant } from '../case.ts'
import type { Place } from '../support/place.ts'
import { type Load, type Served, sendLoad, servedBy, startApi } from '../support/served.ts'
import { latencies } from '../support/statistics.ts'

const model = 'fake'
const ask: Load = {
  path: '/v1/chat/completions',
  body: (n) =>
    JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: `Tell me of number ${n}` }] }),
  fits: ({ status, body }) => status === 200 && body.includes('word 15') && body.includes('[DONE]'),
}

/** Long enough that 64 clients keep no process busy by themselves: a vendor on another machine. */
const slowMs = 200

const startVendor = async ({ processes }: Place, ms: number): Promise<Served> => {
  const { port } = servedBy(await processes.start('vendor-process', { ms }))
  return { port, pids: {} }
}

/** The latency of one client with a vendor that answers at once, the throughput of 64 with one that takes its time. */
const measure = async (
  place: Place,
  open: (vendor: Served) => Promise<Served> | Served,
): Promise<Figures> => {
  const quick = await open(await startVendor(place, 0))
  await sendLoad(quick, ask, { clients: 8, requests: place.count(300) })
  const one = await sendLoad(quick, ask, { clients: 1, requests: place.count(500) })
  const slow = await open(await startVendor(place, slowMs))
  await sendLoad(slow, ask, { clients: 64, requests: place.count(300) })
  const many = await sendLoad(slow, ask, { clients: 64, requests: place.count(2000) })
  return { ...latencies(one.ms), 'answers/s of 64': many.perSecond, ...many.cpu }
}

/** Through the registry: choosing model and key, the ledger, LangChain's client and the way out. */
const mason: Variant = (place) =>
  measure(place, (vendor) => {
    const baseUrl = `http://127.0.0.1:${vendor.port}/v1`
    const openai = { apiKey: 'sk-bench', baseUrl, model, embeddingModel: 'none' }
    return startApi({ ...place, config: { ...place.config, openai } })
  })

const vendor: Variant = (place) => measure(place, (served) => served)

const endpointCase: Case = {
  about:
    'a streamed answer of 16 words through the OpenAI-compatible endpoint, and straight from the same fake vendor',
  ours: { Mason: mason },
  beside: { 'the vendor itself': vendor },
}

export default endpointCase
