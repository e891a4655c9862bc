import { episodeFor } from '../../state/memory/earlier-talk.ts'
import type { FoundMemory, Note } from '../../state/memory/kinds.ts'
import { isSaidIn } from '../../state/memory/said.ts'
import type { Memories, Sql } from '../../state/ports.ts'
import type { Caller } from '../models/ports.ts'
import { saidSinceGivenUp } from './distil-queue.ts'
import { readTalks } from './earlier-talks.ts'
import { holdSession, lockUser, memoryId, noteUse, readyNotes, type Source, writeNote } from './remember.ts'
import { asUser, type Who } from './scope.ts'
import { type Hit, type MemoryRow, type Parts, searchMemories, spacesOf } from './search.ts'
import { readLost } from './shown.ts'

/** Standing preferences that hold whatever is asked. */
const standing = 3
const standingStatement = `
  SELECT memory_id AS id, kind, content, origin, trusted, source_action_ids, strength, last_used_at, created_at
  FROM memories WHERE tenant = $1 AND user_id = $2 AND superseded_by IS NULL AND kind = 'preference' AND trusted
  ORDER BY strength DESC, created_at DESC LIMIT ${standing}`
/** Their share of their strength: below what has to do with the request. */
const standingRelevance = 0.4

const foundMemory = (hit: Hit): FoundMemory => ({
  id: hit.id,
  kind: hit.kind,
  content: hit.content,
  relevance: Math.round(hit.relevance * 1000) / 1000,
  source_action_ids: hit.source_action_ids,
  created_at: hit.created_at.toISOString(),
  origin: hit.origin,
  trusted: hit.trusted,
})

/**
 * Whether a note may be what is forgotten: its user had something forgotten since the run began and has not said this since;
 * or he never said it, and what the session was shown and is gone by now says it.
 */
const isForgotten = async (sql: Sql, who: Who, source: Source, note: Note): Promise<boolean> => {
  const said = await saidSinceGivenUp(sql, who.tenant, source.run_id)
  if (said) return !isSaidIn(said, note.content)
  return !note.trusted && isSaidIn(await readLost(sql, who, source), note.content)
}

/** The memories of one run's user, as its nodes and tools may have them. */
export const createMemories = (parts: Parts, who: Who, source: Source): Memories => {
  const { database } = parts
  const caller: Caller = { business_id: who.tenant, user_id: who.user_id, run_id: source.run_id }
  return {
    any: async () => (await asUser(database, who, (sql) => spacesOf(sql, who), { atOnce: true })).length > 0,
    async search(text, limit, signal) {
      return (await searchMemories(parts, who, caller, { text, limit }, signal)).map(foundMemory)
    },
    async recall(text, limit, signal) {
      const found = await searchMemories(parts, who, caller, { text, limit }, signal)
      return asUser(database, who, async (sql) => {
        const [{ rows }, talks] = await Promise.all([
          sql.query<MemoryRow>(standingStatement, [who.tenant, who.user_id]),
          readTalks(sql, who, source),
        ])
        const episode = episodeFor(text, talks)
        const more = rows
          .filter(({ id }) => !found.some((hit) => hit.id === id))
          .map((row) => ({ ...row, relevance: standingRelevance * row.strength }))
        await noteUse(
          sql,
          who,
          found.map(({ id }) => id),
        )
        return [...[...found, ...more].map(foundMemory), ...(episode ? [episode] : [])]
      })
    },
    async remember(note, place, signal) {
      const [ready] = await readyNotes(
        parts,
        who,
        [{ ...note, id: memoryId(source.run_id, place) }],
        caller,
        signal,
      )
      if (!ready) throw new Error('there is no note')
      return asUser(database, who, async (sql) => {
        await lockUser(sql, who)
        await holdSession(sql, who, source)
        return writeNote(sql, who, source, ready, () => isForgotten(sql, who, source, note))
      })
    },
  }
}
