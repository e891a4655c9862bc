/** What a server says about pgvector: versions as text, null where there is none. */
export type VectorFacts = {
  /** Switched on in this database. */
  vector: string | null
  /** What CREATE EXTENSION would switch on. */
  vector_available: string | null
}

/** `halfvec` and the distance of bits are new in it. */
const leastVector = '0.7.0'

export const vectorColumns = `(SELECT extversion FROM pg_extension WHERE extname = 'vector') AS vector,
  (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS vector_available`

export const switchOn = 'as a superuser in this database: CREATE EXTENSION vector'

/** Versions such as 0.8.1; a part that is no number counts as 0. */
const isEnough = (version: string): boolean => {
  const numbers = (text: string) => text.split('.').map((part) => Number.parseInt(part, 10) || 0)
  const [wanted, given] = [numbers(leastVector), numbers(version)]
  const at = wanted.findIndex((number, place) => number !== (given[place] ?? 0))
  return at === -1 || (given[at] ?? 0) > (wanted[at] ?? 0)
}

/** Why memory cannot stand on this server, and what to do; null where it can once the extension is switched on. */
export const vectorFault = ({
  vector,
  vector_available: available,
}: VectorFacts): { text: string; remedy: string } | null => {
  const install = `install pgvector ${leastVector} or later on the server (image pgvector/pgvector, or the package postgresql-<version>-pgvector)`
  const update = 'as a superuser in this database: ALTER EXTENSION vector UPDATE'
  if (vector !== null) {
    if (isEnough(vector)) return null
    return {
      text: `pgvector ${vector} is too old: ${leastVector} or later is needed`,
      remedy: available !== null && isEnough(available) ? update : `${install}, then ${update}`,
    }
  }
  if (available === null) return { text: 'pgvector is not installed', remedy: install }
  return isEnough(available)
    ? null
    : {
        text: `pgvector ${available} on the server is too old: ${leastVector} or later is needed`,
        remedy: install,
      }
}
