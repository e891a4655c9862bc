import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Project after project: those first whose files mostly wait for processes, those last whose files are short, so that no worker
 * waits for a long file at the end.
 */
const projects = ['console', 'process', 'served', 'embedded', 'unit']

/** Half a minute or more, and short to read: vitest, which takes large files first, would start them last. */
const longest = [
  ...['process/cli', 'process/take-over', 'process/workers', 'process/payment-restart'],
  ...['process/crash-points', 'process/models', 'process/runs'],
  ...['integration/agent-payments', 'integration/orders', 'integration/files', 'regexes'],
].map((name) => `/test/${name}.test.ts`)

const rankOf = ({ project, moduleId }: TestSpecification): number =>
  2 * projects.indexOf(project.name) + (longest.some((end) => moduleId.endsWith(end)) ? 0 : 1)

/** The order of vitest, by project, with the longest files before all others of their project. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other))
  }
}
