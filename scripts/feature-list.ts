import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readFileKind } from '../src/features/definition-files.ts'
import { root } from './source-tree.ts'

const folder = join(root, 'src/features')

/** Where the list of features is written. */
export const featureListPath = join(root, 'src/app/features.generated.ts')

/** As the formatter breaks it. */
const toLine = (head: string, body: string): string =>
  head.length + 1 + body.length <= 110 ? `${head} ${body}` : `${head}\n    ${body}`

/** The features with their files, as the built package loads them. Throws for a file whose suffix is unknown. */
export const renderFeatureList = (): string => {
  const features = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort()
  const lines = features.flatMap((id) =>
    readdirSync(join(folder, id), { encoding: 'utf8', recursive: true })
      .filter((file) => file.endsWith('.ts') && readFileKind(`src/features/${id}`, file) !== null)
      .sort()
      .map((file) => toLine(`  '${id}/${file}': () =>`, `import('../features/${id}/${file}'),`)),
  )
  // what a process reads before it loads anything else
  const early = features.filter((id) =>
    /\bexecutor\b/.test(readFileSync(join(folder, id, 'feature.ts'), 'utf8')),
  )
  const imports = early.map((id) => `import ${id} from '../features/${id}/feature.ts'\n`)
  return `import type { FeatureSource } from '../features/definition-files.ts'
import type { FeatureDefinition } from '../features/definitions.ts'
${imports.join('')}import { groupBy } from '../infra/lib/group-by.ts'

const files: FeatureSource['files'] = {
${lines.join('\n')}
}

const toId = (path: string): string => path.slice(0, path.indexOf('/'))

/** Each folder of src/features with its files, loaded when they are needed; \`npm run features\` writes this file. */
export const featureSources: readonly FeatureSource[] = [
  ...groupBy(Object.entries(files), ([path]) => toId(path)),
].map(([id, own]) => ({
  folder: \`src/features/\${id}\`,
  files: Object.fromEntries(own.map(([path, load]) => [path.slice(id.length + 1), load])),
}))

/** Those that add to the settings of a process. */
export const features: readonly FeatureDefinition[] = [${early.join(', ')}]
`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(featureListPath, renderFeatureList())
