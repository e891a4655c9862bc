import { Session } from 'node:inspector'

type Coverage = { result: { functions: { ranges: { count: number }[] }[] }[] }

/**
 * How many functions and blocks of any module a piece of work passes through: the same number on every machine and under
 * any load. What the engine does inside of one call (a regular expression, `JSON.parse`) is one step.
 */
export const countSteps = (work: () => unknown): number => {
  const session = new Session()
  session.connect()
  // a session in this thread answers at once
  const post = (method: string, params?: object): Coverage => {
    let found: unknown
    session.post(method, params, (error, result) => {
      if (error) throw error
      found = result
    })
    return found as Coverage
  }
  try {
    post('Profiler.enable')
    post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
    work()
    return post('Profiler.takePreciseCoverage')
      .result.flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges))
      .reduce((sum, { count }) => sum + count, 0)
  } finally {
    session.disconnect()
  }
}
