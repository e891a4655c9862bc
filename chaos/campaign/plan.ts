import { existsSync } from 'node:fs'
import { type Session, sessionOf } from './job.ts'
import { faketimeLibrary } from './world.ts'

/** How much of everything a campaign does; the seed says in which order and when. */
export type Plan = {
  seed: number
  sessions: readonly Session[]
  runs: number
  kills: number
  stops: number
  /** Of the workers' lives, how many have a freeze in them; a few more than it takes. */
  stopShare: number
  faultsOfEach: number
  canSkew: boolean
  /** Runs that may have been submitted, and that must have ended, when there were so many kills. */
  submittedBy(kills: number): number
  endedBy(kills: number): number
}

/** Scale 1 is what issue 3 asks for. */
const full = { runs: 10_000, kills: 3000, stops: 800, faultsOfEach: 100 }
/** Runs that may wait at once. */
const ahead = 60
const behind = 90

export const planOf = (seed: number, scale: number): Plan => {
  const scaled = (count: number): number => Math.max(1, Math.round(count * scale))
  const sessions: Session[] = []
  let runs = 0
  while (runs < scaled(full.runs)) {
    const session = sessionOf(seed, sessions.length + 1)
    sessions.push(session)
    runs += session.jobs.length
  }
  const kills = scaled(full.kills)
  const stops = scaled(full.stops)
  return {
    seed,
    sessions,
    runs,
    kills,
    stops,
    stopShare: (1.15 * stops) / kills,
    faultsOfEach: scaled(full.faultsOfEach),
    canSkew: existsSync(faketimeLibrary),
    submittedBy: (done) => (runs * done) / kills + ahead,
    endedBy: (done) => (runs * done) / kills - behind,
  }
}
