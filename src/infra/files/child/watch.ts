/**
 * What a thread beside the work runs: it ends the process, however busy, when it takes more memory or computes longer
 * than it may, or outlives who started it. Time is that of the processor, so that a busy machine fails no sound file. Plain JavaScript, since a thread made of text needs no loader.
 */
export const watch = `
const { parentPort, workerData } = require('node:worker_threads')
const { writeSync } = require('node:fs')
let since = null
const used = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000 }
parentPort.on('message', (works) => { since = works ? used() : null })
const reason = () => {
  if (process.memoryUsage.rss() > workerData.maxBytes) return 'memory'
  if (since !== null && used() - since > workerData.maxMs) return 'time'
  return process.ppid === workerData.parent ? null : 'alone'
}
setInterval(() => {
  const why = reason()
  if (why === null) return
  try { writeSync(2, 'mason: over its limit of ' + why + '\\n') } catch {}
  process.kill(process.pid, 'SIGKILL')
}, 40)
`
