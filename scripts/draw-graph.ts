import { readFile, writeFile } from 'node:fs/promises'
import { loadParts } from '../src/graph/load.ts'
import { withPicture } from '../src/graph/picture.ts'

/** `npm run graph`: writes the picture of the graph and the table of its fields into README.md. */
const path = new URL('../README.md', import.meta.url)
await writeFile(path, withPicture(await readFile(path, 'utf8'), await loadParts()))
