import { openDelimited } from './delimited.ts'
import { openJson, openJsonLines } from './json-records.ts'
import type { RowSource } from './row-source.ts'
import { openWorkbook } from './workbook.ts'

/** The formats that hold tables. */
export type TableFormat = 'csv' | 'xlsx' | 'json' | 'ndjson'

type OpenTables = { sources: RowSource[]; close(): void }

/** Opens the tables of a file. The same bytes give the same tables every time. */
export const openTables = async (
  path: string,
  name: string,
  format: TableFormat,
  bytes: number,
): Promise<OpenTables> => {
  const close = (): void => undefined
  switch (format) {
    case 'csv':
      return { sources: await openDelimited(path, name), close }
    case 'xlsx':
      return openWorkbook(path)
    case 'json':
      return { sources: await openJson(path, bytes), close }
    case 'ndjson':
      return { sources: (await openJsonLines(path)).sources, close }
  }
}
