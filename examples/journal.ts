import { existsSync, fdatasyncSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs'

/** The entries of a file of JSON lines, and where its last whole line ends. Absent: it is empty. Changes nothing. */
export const readJournal = <Entry>(file: string): { entries: Entry[]; end: number; bytes: number } => {
  const content = existsSync(file) ? readFileSync(file) : Buffer.alloc(0)
  const end = content.lastIndexOf('\n') + 1
  const lines = content.subarray(0, end).toString().split('\n')
  const entries = lines.flatMap((line): Entry[] => (line ? [JSON.parse(line)] : []))
  return { entries, end, bytes: content.length }
}

/**
 * Opens books: a file of JSON lines, each on the disk before `write` returns, and applied again at every start. A line that a kill cut
 * off never counted.
 */
export const openJournal = <Entry>(file: string, apply: (entry: Entry) => void): ((entry: Entry) => void) => {
  const { entries, end, bytes } = readJournal<Entry>(file)
  if (end < bytes) truncateSync(file, end)
  const journal = openSync(file, 'a', 0o600)
  for (const entry of entries) apply(entry)
  return (entry) => {
    const line = Buffer.from(`${JSON.stringify(entry)}\n`)
    for (let at = 0; at < line.length; ) at += writeSync(journal, line, at)
    fdatasyncSync(journal)
    apply(entry)
  }
}
