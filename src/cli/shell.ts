import { type Environment, readEnvironment } from '../infra/config.ts'
import { createScrubber, type Scrubber } from '../infra/secrets/scrubber.ts'
import { describeFailure, exitCodeOf, exitCodes } from './failure.ts'

/** How long what a command left open may hold the process. */
const lingerMs = 2000

/**
 * Runs a whole process: what is thrown becomes a message with its remedy, and the exit code. A rejection that nobody
 * handles ends the process, for its state is unknown then. What the command tells the scrubber shows in neither.
 */
export const runCommand = async (
  command: (env: () => Environment, scrubber: Scrubber) => Promise<number>,
): Promise<void> => {
  const scrubber = createScrubber()
  const tell = (error: unknown): void => {
    process.stderr.write(`${scrubber.text(describeFailure(error, safely(readEnvironment)))}\n`)
  }
  process.on('unhandledRejection', (error) => {
    tell(error)
    process.exit(exitCodes.failed)
  })
  // whoever reads the output has seen enough: `mason run … | head`
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(exitCodes.done)
    throw error
  })
  try {
    process.exitCode = await command(readEnvironment, scrubber)
  } catch (error) {
    tell(error)
    process.exitCode = exitCodeOf(error)
  }
  setTimeout(() => process.exit(), lingerMs).unref()
}

const safely = (read: () => Environment): Environment => {
  try {
    return read()
  } catch {
    return {}
  }
}
