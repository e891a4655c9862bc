import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { loadAllParts } from '../src/app/load-all-parts.ts'
import { inVisitOrder, listRouterNodes } from '../src/graph/diagram.ts'
import type { GraphParts } from '../src/graph/graph-parts.ts'
import { createRouter } from '../src/graph/router.ts'
import { stateFields } from '../src/state/runtime-state.ts'

/** Rows of a Markdown table: which fields of the state each node and tool reads, and which it changes. */
export const describeAccess = (parts: GraphParts): string[] =>
  inVisitOrder(parts).map((part) => {
    const kind = part.kind === 'node' ? 'node' : `${part.kinds.join(', ')} tool`
    return `| \`${part.name}\` | ${kind} | ${fieldList(part.reads)} | ${fieldList(part.writes)} |`
  })

const fieldList = (fields: readonly string[]): string => {
  if (fields.length === stateFields.length) return 'everything'
  if (fields.length === 0) return '–'
  return stateFields
    .filter((field) => fields.includes(field))
    .map((field) => `\`${field}\``)
    .join(' ')
}

/** The text with `content` between `<!-- name:begin -->` and `<!-- name:end -->`. Throws when a mark is missing. */
export const replaceBetween = (text: string, name: string, content: string): string => {
  const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`]
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`the text has no ${begin} … ${end}`)
  return `${text.slice(0, from + begin.length)}\n${content}\n${text.slice(to)}`
}

/** The picture of a graph of these parts, as LangGraph draws it. */
export const drawGraph = (parts: GraphParts): Promise<string> =>
  createRouter(listRouterNodes(parts), async () => []).draw()

/** A page with the picture of these parts. */
export const withPicture = async (page: string, parts: GraphParts): Promise<string> =>
  replaceBetween(page, 'graph', `\`\`\`mermaid\n${await drawGraph(parts)}\`\`\``)

/** A page with the table of the fields that these parts read and write. */
export const withAccess = (page: string, parts: GraphParts): string =>
  replaceBetween(
    page,
    'fields',
    ['| node or tool | kind | reads | writes |', '|---|---|---|---|', ...describeAccess(parts)].join('\n'),
  )

/** `npm run graph`: writes the picture of the graph into both READMEs, the table of fields into docs/state-access.md. */
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const parts = await loadAllParts()
  const pages = {
    'README.md': withPicture,
    'README.zh-CN.md': withPicture,
    'docs/state-access.md': withAccess,
  }
  for (const [name, fill] of Object.entries(pages)) {
    const path = new URL(`../${name}`, import.meta.url)
    await writeFile(path, await fill(await readFile(path, 'utf8'), parts))
  }
}
