import { defineProcess } from '../definitions.ts'

export default defineProcess({
  name: 'payments',
  role: 'payments',
  // loaded when it is called, so that wrong settings are reported at once
  open: async (...args) => (await import('./executor/executor-process.ts')).openExecutor(...args),
})
