import type { Log } from '../../state/ports/log.ts'

/** A log that discards everything. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }
