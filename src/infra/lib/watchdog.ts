import { Worker } from 'node:worker_threads'

/**
 * Ends this process (SIGKILL, after a line on stderr) once its event loop has been blocked for `limitMs`: a tool that
 * computes for ever blocks every other run and request of its process, and no timer of the process can notice. Use it only under a
 * supervisor that restarts the process. Time in which the whole process was stopped does not count. `say`: what it writes
 * from now on instead.
 */
export const watchEventLoop = (limitMs: number): { say(message: string): void } & Disposable => {
  const beats = new Int32Array(new SharedArrayBuffer(4))
  const checkMs = limitMs / checksPerLimit
  const beating = setInterval(() => Atomics.add(beats, 0, 1), checkMs / 2).unref()
  const thread = new Worker(watchScript, {
    eval: true,
    execArgv: [],
    workerData: { beats, checkMs, checks: checksPerLimit, limitMs },
  })
  thread.unref()
  return {
    say: (message) => thread.postMessage(message),
    [Symbol.dispose]() {
      clearInterval(beating)
      void thread.terminate()
    },
  }
}

const checksPerLimit = 10

/** Runs in its own thread. It counts its own checks instead of reading the clock, which goes on while the process is stopped. */
const watchScript = `
  const { parentPort, workerData: { beats, checkMs, checks, limitMs } } = require('node:worker_threads')
  const { writeSync } = require('node:fs')
  let message = 'mason: the event loop was blocked for ' + limitMs + ' ms, most likely by a tool that computes without a pause; ' +
    'this process ends, so that its supervisor starts it again, and other workers take its runs when the leases expire'
  parentPort.on('message', (said) => { message = said }).unref()
  let last = -1
  let missed = 0
  setInterval(() => {
    const now = Atomics.load(beats, 0)
    missed = now === last ? missed + 1 : 0
    last = now
    if (missed < checks) return
    writeSync(2, message + '\\n')
    process.kill(process.pid, 'SIGKILL')
  }, checkMs)`
