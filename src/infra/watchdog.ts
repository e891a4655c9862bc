import { Worker } from 'node:worker_threads'

/**
 * Ends this process (SIGKILL, after a line on stderr) once its event loop has stood still for `limitMs`: a tool that
 * computes for ever holds up every other run of its worker, and no timer of this process can tell. Only with a supervisor
 * that starts it again. Time in which the whole process was stopped does not count.
 */
export const watchEventLoop = (limitMs: number): Disposable => {
  const beats = new Int32Array(new SharedArrayBuffer(4))
  const lookMs = limitMs / looks
  const beating = setInterval(() => Atomics.add(beats, 0, 1), lookMs / 2).unref()
  const thread = new Worker(watch, {
    eval: true,
    execArgv: [],
    workerData: { beats, lookMs, looks, limitMs },
  })
  thread.unref()
  return {
    [Symbol.dispose]() {
      clearInterval(beating)
      void thread.terminate()
    },
  }
}

const looks = 10

/** Runs in a thread of its own. It counts its own looks and not the clock, which goes on while the process is stopped. */
const watch = `
  const { workerData: { beats, lookMs, looks, limitMs } } = require('node:worker_threads')
  const { writeSync } = require('node:fs')
  let seen = -1
  let still = 0
  setInterval(() => {
    const now = Atomics.load(beats, 0)
    still = now === seen ? still + 1 : 0
    seen = now
    if (still < looks) return
    writeSync(2, 'mason: the event loop stood still for ' + limitMs + ' ms, most likely in a tool that computes without a pause; ' +
      'this worker ends itself, and its runs go to others when their leases end\\n')
    process.kill(process.pid, 'SIGKILL')
  }, lookMs)`
