import { basename } from 'node:path'

/** What to put before a suggested command so that it can be pasted: installed for all, or run from its folder. */
export const commandName = (script = process.argv[1] ?? ''): string =>
  basename(script) === 'mason' && !script.includes('node_modules') ? 'mason' : 'npx mason'
