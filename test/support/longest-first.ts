import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { findIntegrationFiles } from './marks.ts'

/**
 * Kind after kind: those first whose files mostly wait for processes, those last whose files are short, so that no worker
 * waits for a long file at the end.
 */
const kinds = ['console', 'process', 'served', 'embedded', 'unit']

const integrationFiles = findIntegrationFiles()

/** Of an integration test the database, else the folder of its file. */
const kindOf = ({ project, moduleId }: TestSpecification): string =>
  integrationFiles.some((file) => moduleId.endsWith(`/${file}`))
    ? project.name
    : (/\/test\/(process|console)\//.exec(moduleId)?.[1] ?? 'unit')

/** Half a minute or more, and short to read: vitest, which takes large files first, would start them last. */
const longest = [
  ...['process/cli', 'process/take-over', 'process/workers', 'process/payment-restart'],
  ...['process/crash-points', 'process/commands'],
  ...['features/payments/agent-payments', 'engine/runs/orders', 'files/files', 'regexes'],
].map((name) => `/test/${name}.test.ts`)

const rankOf = (file: TestSpecification): number =>
  2 * kinds.indexOf(kindOf(file)) + (longest.some((end) => file.moduleId.endsWith(end)) ? 0 : 1)

/** The order of vitest, by kind, with the longest files before all others of their kind. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other))
  }
}
