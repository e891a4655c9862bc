import { Writable } from 'node:stream'
import { type Logger, pino } from 'pino'
import type { Config } from '../../infra/config/config.ts'
import { scrubLine } from '../../infra/secrets/scrubbed-log.ts'
import { createScrubber, type Scrubber } from '../../infra/secrets/scrubber.ts'
import type { Log } from '../../state/ports/log.ts'

/** Logs of a server process: JSON lines on stderr, or short readable lines where that is a terminal. */
export const createLog = (
  level: Config['logLevel'],
  err: NodeJS.WriteStream = process.stderr,
  scrubber: Pick<Scrubber, 'text'> = createScrubber(),
): Logger =>
  createPino(
    level,
    { pid: process.pid },
    err.isTTY ? createReadableOutput((line) => err.write(`${line}\n`)) : err,
    scrubber,
  )

/** Logs of a command with output of its own: warnings and errors as lines for people. */
export const createNoteLog = (
  level: Config['logLevel'],
  note: (line: string) => void,
  scrubber: Pick<Scrubber, 'text'> = createScrubber(),
): Log => createPino(level, null, createReadableOutput(note), scrubber)

/** Scrubs each finished line, so no known secret leaves the process, whichever code or serializer wrote it. */
const createPino = (
  level: Config['logLevel'],
  base: { pid: number } | null,
  to: { write(line: string): unknown },
  scrubber: Pick<Scrubber, 'text'>,
): Logger =>
  pino(
    { level, base, serializers: { error: pino.stdSerializers.err } },
    { write: (line) => void to.write(scrubLine(line, scrubber)) },
  )

const levelNames: Record<number, string> = { ...pino.levels.labels, 40: 'warning' }

const createReadableOutput = (write: (line: string) => void): Writable =>
  new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      for (const line of chunk.toString().split('\n')) if (line) write(formatLogLine(line))
      done()
    },
  })

const formatLogLine = (line: string): string => {
  const { level, time, pid: _pid, msg, ...data } = JSON.parse(line) as Record<string, unknown>
  const clock = typeof time === 'number' ? new Date(time).toISOString().slice(11, 19) : ''
  const details = Object.entries(data).map(([name, value]) => `${name}=${formatLogValue(value)}`)
  return [clock, levelNames[Number(level)] ?? '', String(msg ?? ''), ...details].filter(Boolean).join('  ')
}

const formatLogValue = (value: unknown): string => {
  if (typeof value === 'string') return value
  const { message } = (value ?? {}) as { message?: unknown }
  return typeof message === 'string' ? message : (JSON.stringify(value) ?? '')
}
