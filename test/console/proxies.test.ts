// tier: all
import { openConsole } from './console.ts'
import { walk } from './walk.ts'

walk('behind a proxy', () => openConsole({ prefix: '/mason' }), [
  'a proxy that strips the path',
  'a proxy that keeps the path',
])
