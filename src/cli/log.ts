import { Writable } from 'node:stream'
import { type Logger, pino } from 'pino'
import type { Config } from '../infra/config.ts'
import type { Log } from '../state/ports.ts'

/** Logs of a server process: JSON lines on stderr, or short readable lines where that is a terminal. */
export const createLog = (level: Config['logLevel'], err: NodeJS.WriteStream = process.stderr): Logger =>
  pino(
    { level, base: { pid: process.pid }, serializers: { error: pino.stdSerializers.err } },
    err.isTTY ? readable((line) => err.write(`${line}\n`)) : err,
  )

/** Logs of a command that shows its own picture: warnings and errors as lines for people. */
export const createNotes = (level: Config['logLevel'], note: (line: string) => void): Log =>
  pino({ level, base: null, serializers: { error: pino.stdSerializers.err } }, readable(note))

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
