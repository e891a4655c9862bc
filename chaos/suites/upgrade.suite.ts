import type { Suite } from '../suite.ts'
import { upgrade } from '../upgrade/upgrade.ts'

export default {
  about:
    'the version before is upgraded under load by the documented steps: of 10,000 runs none is lost or doubled (CHAOS_BUILD: its built checkout)',
  run: upgrade,
} satisfies Suite
