import { createEffectTool } from './call-ledger.ts'

export default createEffectTool('queryable')
