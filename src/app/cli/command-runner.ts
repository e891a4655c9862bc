import { describeError } from '../../graph/load.ts'
import { type Environment, readEnvironment } from '../../infra/config/config.ts'
import { createScrubber, type Scrubber } from '../../infra/secrets/scrubber.ts'
import { isMasonError } from '../../state/errors.ts'
import { exitCodes, formatCliError, toExitCode } from './errors.ts'
import { exitOnSignals } from './interrupts.ts'

/** How long open handles of a finished command may keep the process alive. */
const exitGraceMs = 2000

/**
 * Runs one command as the whole process: an error becomes a message with its remedy and sets the exit code. An unhandled
 * one ends the process, because its state is unknown then. Secrets that the scrubber knows are never printed.
 */
export const runCommand = async (
  command: (env: () => Environment, scrubber: Scrubber) => Promise<number>,
): Promise<void> => {
  exitOnSignals()
  const scrubber = createScrubber()
  const printError = (error: unknown): void => {
    process.stderr.write(`${scrubber.text(formatCliError(error, readEnvironmentSafely()))}\n`)
  }
  // and an unhandled rejection
  process.on('uncaughtException', (error) => {
    printError(isMasonError(error) ? error : new Error(describeError(error), { cause: error }))
    process.exit(exitCodes.failed)
  })
  // the reader of the output has closed it: `mason run … | head`
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(exitCodes.done)
    printError(error)
    process.exit(exitCodes.failed)
  })
  try {
    process.exitCode = await command(readEnvironment, scrubber)
  } catch (error) {
    printError(error)
    process.exitCode = toExitCode(error)
  }
  setTimeout(() => process.exit(), exitGraceMs).unref()
}

/** Empty where `.env` is unreadable, which is the error that is printed then. */
const readEnvironmentSafely = (): Environment => {
  try {
    return readEnvironment()
  } catch {
    return {}
  }
}
