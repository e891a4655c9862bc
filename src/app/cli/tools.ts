import { relative } from 'node:path'
import type { Environment } from '../../infra/config/config.ts'
import { loadProduct } from '../load-all-parts.ts'
import { readConfig } from '../read-config.ts'
import { exitCodes } from './errors.ts'

/** `mason tools`: lists the nodes and tools of a run, with those of the product. Returns the exit code. */
export const listTools = async ({ json }: { json?: boolean }, env: Environment): Promise<number> => {
  const { files } = (await loadProduct(readConfig(env, { role: 'tools' }))).parts
  const rows = [...files].map(([part, file]) => ({
    name: part.name,
    kind: part.kind === 'node' ? 'node' : part.kinds.join(', '),
    reads: part.reads as string[],
    writes: part.writes as string[],
    file: relative(process.cwd(), file),
    ...(part.kind === 'tool' && { server: part.server, exclusive: part.exclusive, raw: part.raw }),
  }))
  const widths = (['name', 'kind'] as const).map((field) => Math.max(...rows.map((row) => row[field].length)))
  for (const row of rows) {
    const [name, kind] = [row.name.padEnd(widths[0] ?? 0), row.kind.padEnd(widths[1] ?? 0)]
    const line = `${name}  ${kind}  ${row.file}\n${' '.repeat(4)}reads ${row.reads.join(', ') || 'nothing'}; writes ${row.writes.join(', ') || 'nothing'}`
    process.stdout.write(`${json ? JSON.stringify(row) : line}\n`)
  }
  return exitCodes.done
}
