import { existsSync, fdatasyncSync, openSync, readFileSync, truncateSync, writeSync } from 'node:fs'

/**
 * Opens books: a file of JSON lines, each on the disk before `write` returns, and applied again at every start. A line that a kill cut
 * off never counted.
 */
export const openJournal = <Entry>(file: string, apply: (entry: Entry) => void): ((entry: Entry) => void) => {
  const text = existsSync(file) ? readFileSync(file) : Buffer.alloc(0)
  const end = text.lastIndexOf('\n') + 1
  if (end < text.length) truncateSync(file, end)
  const journal = openSync(file, 'a', 0o600)
  for (const line of text.subarray(0, end).toString().split('\n')) if (line) apply(JSON.parse(line) as Entry)
  return (entry) => {
    const line = Buffer.from(`${JSON.stringify(entry)}\n`)
    for (let at = 0; at < line.length; ) at += writeSync(journal, line, at)
    fdatasyncSync(journal)
    apply(entry)
  }
}
