import { appendFileSync } from 'node:fs'
import type { SerializedError } from 'vitest'
import type { Reporter, TestModule } from 'vitest/node'
import type { FileResult, LogLine } from '../../scripts/test-verdict.ts'

/** Writes what runs and how it ends to a file of JSON lines, from which `scripts/test.ts` makes its verdict. */
export const createTestLog = (path: string): Reporter => {
  const write = (line: LogLine) => appendFileSync(path, `${JSON.stringify(line)}\n`)
  return {
    onTestModuleStart: (module) => write({ started: module.relativeModuleId, project: module.project.name }),
    onTestModuleEnd: (module) => write(resultOf(module)),
    onTestRunEnd(modules, unhandled) {
      // one that could not be loaded, or whose process is gone, has no end of its own
      for (const module of modules) write(resultOf(module))
      write({ unhandled: unhandled.map(textOf) })
    },
  }
}

const resultOf = (module: TestModule): FileResult => {
  const suites = [...module.children.allSuites()].flatMap((suite) =>
    suite.errors().map((error) => ({ name: suite.fullName, error })),
  )
  const failures = [...module.errors().map((error) => ({ name: 'the file', error })), ...suites]
  return {
    file: module.relativeModuleId,
    path: module.moduleId,
    project: module.project.name,
    tests: [
      ...failures.map(({ name, error }) => ({ name, state: 'failed' as const, error: textOf(error) })),
      ...[...module.children.allTests()].map((test) => {
        const { state, errors = [] } = test.result()
        // no result: the run ended before it
        const failed = state === 'pending' ? ['it has no result: the run ended before'] : errors.map(textOf)
        return {
          name: test.fullName,
          state: state === 'pending' ? ('failed' as const) : state,
          ...(failed.length > 0 && { error: failed.join('\n') }),
        }
      }),
    ],
  }
}

/**
 * Of the causes too: what waits for a fact wraps the error of its last look. The stack of a test that reached its limit does
 * not begin with the message.
 */
const textOf = ({ name, message, stack = '', cause }: SerializedError): string =>
  [
    stack.includes(message) ? stack : `${name}: ${message}\n${stack}`,
    cause && textOf(cause as SerializedError),
  ]
    .filter(Boolean)
    .join('\ncaused by ')
