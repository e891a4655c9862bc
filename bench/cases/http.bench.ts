import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Case, Variant } from '../case.ts'
import { startPeer } from '../support/peer.ts'
import { type Load, oneAndSixteen, servedBy, startServed } from '../support/served.ts'

const run: Load = {
  path: '/v1/runs/wait',
  body: () => '{"prompt":"hello","user_id":"u1"}',
  fits: ({ status, body }) => status === 200 && body.includes('"finish_reason":"answered"'),
}

/** API, worker and client are processes of their own; Redis and Postgres stand between them. */
const mason: Variant = async (place) => oneAndSixteen(await startServed(place), run, place.count)

const peerRun: Load = {
  path: '/runs/wait',
  body: () => '{"assistant_id":"agent","input":{"actions":[]}}',
  fits: ({ status, body }) => status === 200 && body.includes('"node":"end"'),
}

/** It keeps everything in its own memory. Fewer runs, since each takes half a second. */
const langGraphApi: Variant = async (place) => {
  const folder = await mkdtemp(join(tmpdir(), 'mason-bench-peer-'))
  try {
    const peer = await startPeer(place, 'langgraph-api', { folder })
    return await oneAndSixteen(servedBy(peer), peerRun, (full) => place.count(full / 10))
  } finally {
    await place.processes.end()
    await rm(folder, { recursive: true, force: true })
  }
}

const http: Case = {
  about: 'a no-op run over HTTP, from submit to result, by 1 client and by 16, with 1 worker process',
  ours: { Mason: mason },
  beside: { 'LangGraph API': langGraphApi },
}

export default http
