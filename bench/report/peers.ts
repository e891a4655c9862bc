import { round } from '../support/statistics.ts'
import type { Find } from './reach/goal.ts'

/** A figure of Mason beside the same figure of a peer, or of the bare database or queue. `more`: the higher one is better. */
type Comparison = { what: string; mason: Figure; peer: Figure; by: string; unit: string; more?: true }
type Figure = Parameters<Find>

const headline = (peer: string): Comparison[] => [
  {
    what: 'a no-op run of eight durable actions over HTTP, one client',
    mason: ['headline', 'Mason', 'ms p50'],
    peer: ['headline', peer, 'ms p50'],
    ...{ by: peer, unit: 'ms' },
  },
  {
    what: 'such runs for 16 clients, finished and learned from',
    mason: ['headline', 'Mason', 'runs/s of 16'],
    peer: ['headline', peer, 'runs/s of 16'],
    ...{ by: peer, unit: 'runs/s', more: true },
  },
  {
    what: 'such runs for 64 clients, two worker processes',
    mason: ['headline', 'Mason', 'runs/s of 64'],
    peer: ['headline', peer, 'runs/s of 64'],
    ...{ by: peer, unit: 'runs/s', more: true },
  },
  {
    what: 'processor time of such a run for 16 clients, all processes',
    mason: ['headline', 'Mason', 'all CPU ms each'],
    peer: ['headline', peer, 'all CPU ms each'],
    ...{ by: peer, unit: 'ms' },
  },
]

const comparisons: readonly Comparison[] = [
  ...headline('Restate'),
  ...headline('DBOS'),
  {
    what: 'a no-op run of eight actions over HTTP, one client',
    mason: ['http', 'Mason', 'ms p50'],
    peer: ['http', 'LangGraph API', 'ms p50'],
    ...{ by: 'LangGraph API server', unit: 'ms' },
  },
  {
    what: 'such runs for sixteen clients, one worker process',
    mason: ['http', 'Mason', 'runs/s of 16'],
    peer: ['http', 'LangGraph API', 'runs/s of 16'],
    ...{ by: 'LangGraph API server', unit: 'runs/s', more: true },
  },
  {
    what: 'a run of 1,000 actions on Postgres',
    mason: ['history', 'Mason 1000', 'seconds'],
    peer: ['history', 'LangGraph 1000', 'seconds'],
    ...{ by: "LangGraph's checkpointer", unit: 's' },
  },
  {
    what: 'what it stores for each byte of payload',
    mason: ['history', 'Mason 1000', 'stored / payload'],
    peer: ['history', 'LangGraph 1000', 'stored / payload'],
    ...{ by: "LangGraph's checkpointer", unit: 'bytes' },
  },
  {
    what: 'a durable action, the whole loop included',
    mason: ['append', 'Mason', 'ms per action'],
    peer: ['append', 'one connection, one row a commit', 'ms per action'],
    ...{ by: 'its bare statement', unit: 'ms' },
  },
  {
    what: 'accepted runs, durable before their 202',
    mason: ['accept', 'Redis up', 'POST/s'],
    peer: ['accept', '10 connections, one admission a commit', 'POST/s'],
    ...{ by: 'their bare statement', unit: 'a second', more: true },
  },
  {
    what: 'jobs of the queue at a concurrency of 16',
    mason: ['queue', 'Mason', 'jobs/s at 16'],
    peer: ['queue', 'raw BullMQ', 'jobs/s at 16'],
    ...{ by: 'BullMQ alone', unit: 'a second', more: true },
  },
  {
    what: 'answers of the OpenAI-compatible endpoint for 64 clients',
    mason: ['openai-endpoint', 'Mason', 'answers/s of 64'],
    peer: ['openai-endpoint', 'the vendor itself', 'answers/s of 64'],
    ...{ by: 'the vendor called directly', unit: 'a second', more: true },
  },
]

/** The table of ratios: above 1 Mason is the better one. A comparison that was not measured is left out. */
export const drawPeers = (find: Find): string =>
  [
    '| | Mason | beside it | ratio |',
    '|---|---|---|---|',
    ...comparisons.flatMap(({ what, mason, peer, by, unit, more }) => {
      const [ours, theirs] = [find(...mason), find(...peer)]
      const ratio = more ? ours / theirs : theirs / ours
      return Number.isFinite(ratio)
        ? [`| ${what} | ${round(ours)} ${unit} | ${by}: ${round(theirs)} ${unit} | **${round(ratio)}** |`]
        : []
    }),
  ].join('\n')
