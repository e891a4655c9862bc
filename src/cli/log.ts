import { Writable } from 'node:stream'
import { type Logger, pino } from 'pino'
import type { Config } from '../infra/config.ts'
import { scrubLine } from '../infra/secrets/scrubbed-log.ts'
import { createScrubber, type Scrubber } from '../infra/secrets/scrubber.ts'
import type { Log } from '../state/ports.ts'

/** Logs of a server process: JSON lines on stderr, or short readable lines where that is a terminal. */
export const createLog = (
  level: Config['logLevel'],
  err: NodeJS.WriteStream = process.stderr,
  scrubber: Pick<Scrubber, 'text'> = createScrubber(),
): Logger =>
  pino(
    { level, base: { pid: process.pid }, serializers: { error: pino.stdSerializers.err } },
    clean(err.isTTY ? readable((line) => err.write(`${line}\n`)) : err, scrubber),
  )

/** Logs of a command that shows its own picture: warnings and errors as lines for people. */
export const createNotes = (
  level: Config['logLevel'],
  note: (line: string) => void,
  scrubber: Pick<Scrubber, 'text'> = createScrubber(),
): Log =>
  pino(
    { level, base: null, serializers: { error: pino.stdSerializers.err } },
    clean(readable(note), scrubber),
  )

/** The last thing before a line leaves: whoever wrote it, and whatever serializer made it, no known secret is in it. */
const clean = (
  to: { write(line: string): unknown },
  scrubber: Pick<Scrubber, 'text'>,
): { write(line: string): void } => ({ write: (line) => void to.write(scrubLine(line, scrubber)) })

const levelNames: Record<number, string> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warning',
  50: 'error',
  60: 'fatal',
}

const readable = (write: (line: string) => void): Writable =>
  new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      for (const line of chunk.toString().split('\n')) if (line) write(shorten(line))
      done()
    },
  })

const shorten = (line: string): string => {
  const { level, time, pid: _pid, msg, ...data } = JSON.parse(line) as Record<string, unknown>
  const clock = typeof time === 'number' ? new Date(time).toISOString().slice(11, 19) : ''
  const details = Object.entries(data).map(([name, value]) => `${name}=${valueText(value)}`)
  return [clock, levelNames[Number(level)] ?? '', String(msg ?? ''), ...details].filter(Boolean).join('  ')
}

const valueText = (value: unknown): string => {
  if (typeof value === 'string') return value
  const { message } = (value ?? {}) as { message?: unknown }
  return typeof message === 'string' ? message : (JSON.stringify(value) ?? '')
}
