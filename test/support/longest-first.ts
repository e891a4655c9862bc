import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Minutes each, and short to read: vitest, which takes large files first, would start them last and wait for them. */
const longest = ['crash-points', 'pages', 'cli', 'take-over'].map((name) => `/process/${name}.test.ts`)
const isLong = ({ moduleId }: TestSpecification): boolean =>
  moduleId.includes('/test/console/') || longest.some((end) => moduleId.endsWith(end))

/** The order of vitest, with the longest files before all others of their group. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}
