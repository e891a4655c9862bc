import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readFileKind } from '../src/features/load-features.ts'
import { root } from './source-tree.ts'

const folder = join(root, 'src/features')

/** Where the list of features is written. */
export const featureListPath = join(root, 'src/app/features.generated.ts')

/** As the formatter breaks it. */
const toLine = (head: string, body: string): string =>
  head.length + 1 + body.length <= 110 ? `${head} ${body}` : `${head}\n      ${body}`

/** The features with their files, as the built package loads them. Throws for a file whose suffix is unknown. */
export const renderFeatureList = (): string => {
  const features = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort()
  const blocks = features.map((id) => {
    const files = readdirSync(join(folder, id), { encoding: 'utf8', recursive: true })
      .filter((file) => file.endsWith('.ts') && readFileKind(`src/features/${id}`, file) !== null)
      .sort()
    const lines = files.map((file) => toLine(`    '${file}': () =>`, `import('../features/${id}/${file}'),`))
    return [`  ${/^\w+$/.test(id) ? id : `'${id}'`}: {`, ...lines, '  },'].join('\n')
  })
  return `import type { FeatureSource } from '../features/load-features.ts'

const filesOf: Readonly<Record<string, FeatureSource['files']>> = {
${blocks.join('\n')}
}

/** Each folder of src/features with its files, loaded when they are needed; \`npm run features\` writes this file. */
export const featureSources: readonly FeatureSource[] = Object.entries(filesOf).map(([id, files]) => ({
  folder: \`src/features/\${id}\`,
  files,
}))
`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(featureListPath, renderFeatureList())
