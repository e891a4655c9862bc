import type { Case, Figures, Variant } from '../case.ts'
import { longRun, storedBytes } from '../support/long-run.ts'
import { startPeer } from '../support/peer.ts'
import type { Place } from '../support/place.ts'

const lengths = [10, 100, 300, 1000]

/** Adds what a run left in the tables of a schema, against the bytes it had to keep. */
const withStored = async (
  place: Place,
  schema: 'mason' | 'public',
  work: () => Promise<{ ms: number; actions: number; payload: number }>,
): Promise<Figures> => {
  const before = await storedBytes(place, schema)
  const { ms, actions, payload } = await work()
  const bytes = (await storedBytes(place, schema)) - before
  return {
    seconds: ms / 1000,
    'ms per action': ms / actions,
    'stored MB': bytes / 1e6,
    'stored / payload': bytes / payload,
  }
}

/** One run of so many actions of 2 KB, begun by a process that has just started. */
const mason =
  (actions: number): Variant =>
  (place) =>
    withStored(place, 'mason', () => longRun(place, place.count(actions)))

/** As many nodes visited in a loop of three, each adding 2 KB to a channel, each step kept before the next begins. */
const langGraph =
  (actions: number): Variant =>
  (place) =>
    withStored(place, 'public', async () => {
      const task = { databaseUrl: place.databaseUrl, actions: place.count(actions), bytes: 2048 }
      const { report } = await startPeer(place, 'langgraph-postgres', task)
      return { ms: report.ms ?? Number.NaN, actions: task.actions, payload: task.actions * task.bytes }
    })

const named = (make: (actions: number) => Variant): Record<string, Variant> =>
  Object.fromEntries(lengths.map((actions) => [`${actions}`, make(actions)]))

const prefixed = (who: string, variants: Record<string, Variant>): Record<string, Variant> =>
  Object.fromEntries(Object.entries(variants).map(([actions, variant]) => [`${who} ${actions}`, variant]))

const history: Case = {
  about: 'a run of 10 to 1000 actions of 2 KB: time and stored bytes, against LangGraph with PostgresSaver',
  ours: prefixed('Mason', named(mason)),
  beside: prefixed('LangGraph', named(langGraph)),
}

export default history
