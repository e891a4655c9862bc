import { createLookTool } from './call-ledger.ts'

export default createLookTool()
