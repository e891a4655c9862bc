import { lookTool } from './call-ledger.ts'

export default lookTool()
