import { readdirSync } from 'node:fs'

/** The cases asked for, or all there are; refuses a name that is none. */
export const caseNames = (wanted: readonly string[]): string[] => {
  const folder = new URL('../cases/', import.meta.url)
  const known = readdirSync(folder).flatMap((file) => /^(.+)\.bench\.ts$/.exec(file)?.[1] ?? [])
  const unknown = wanted.filter((name) => !known.includes(name))
  if (unknown.length > 0) throw new Error(`no case "${unknown.join('", "')}"; there are: ${known.join(', ')}`)
  return wanted.length > 0 ? [...wanted] : known
}
