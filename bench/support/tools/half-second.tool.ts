import { waitingTool } from '../waiting-tool.ts'

/** A read that takes half a second. */
export default waitingTool('half_second', 500, 'read')
