import type { Suite } from '../suite.ts'
import { meetVendors } from '../vendors/campaign.ts'

const suite: Suite = {
  about:
    '24 faults of two vendors: each call ends in time, the ledger has what they billed to the token, no secret shows',
  run: (options) => meetVendors(Math.max(20, Math.round(5000 * options.scale)), options),
}
export default suite
