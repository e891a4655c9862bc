import { runCampaign } from '../campaign/campaign.ts'
import type { Suite } from '../suite.ts'

export default {
  about:
    'workers are killed and frozen, Redis and Postgres broken, clocks set wrong: nothing may be lost, nothing doubled',
  run: runCampaign,
} satisfies Suite
