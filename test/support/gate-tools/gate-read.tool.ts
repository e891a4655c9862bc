import { createReadTool } from './call-gate.ts'

export default createReadTool('gate_read')
