import { lookTool } from './call-gate.ts'

export default lookTool('gate_read')
