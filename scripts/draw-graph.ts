import { readFile, writeFile } from 'node:fs/promises'
import { loadAllParts } from '../src/app/load-all-parts.ts'
import { withAccess, withPicture } from '../src/graph/diagram.ts'

/** `npm run graph`: writes the picture of the graph into both READMEs, the table of fields into docs/state-access.md. */
const parts = await loadAllParts()
const pages = { 'README.md': withPicture, 'README.zh-CN.md': withPicture, 'docs/state-access.md': withAccess }
for (const [name, fill] of Object.entries(pages)) {
  const path = new URL(`../${name}`, import.meta.url)
  await writeFile(path, await fill(await readFile(path, 'utf8'), parts))
}
