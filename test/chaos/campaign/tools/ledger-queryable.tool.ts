import { effectTool } from './call-ledger.ts'

export default effectTool('queryable')
