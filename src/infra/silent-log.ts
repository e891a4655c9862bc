import type { Log } from '../state/ports.ts'

/** Where nobody asked for a log. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }
