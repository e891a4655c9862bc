import { openJournal } from '../journal.ts'

/** A row of the books: its table, its key and what it is from now on. */
export type Row = [table: string, key: string, value: object]

/** Books of tables. Rows that are written together are kept together, or not at all. */
export const openBooks = (file: string) => {
  const tables = new Map<string, Map<string, object>>()
  const table = (name: string): Map<string, object> => {
    const rows = tables.get(name) ?? new Map<string, object>()
    tables.set(name, rows)
    return rows
  }
  const write = openJournal<Row[]>(file, (rows) => {
    for (const [name, key, value] of rows) table(name).set(key, value)
  })
  return {
    write: (...rows: Row[]): void => write(rows),
    get: <Value extends object>(name: string, key: string): Value | undefined =>
      table(name).get(key) as Value | undefined,
    list: <Value extends object>(name: string): Value[] => [...table(name).values()] as Value[],
  }
}

/** What an agent knows, on the disk. */
export type Books = ReturnType<typeof openBooks>
