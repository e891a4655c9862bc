import { waitingTool } from '../waiting-tool.ts'

/** Takes one second. */
export default waitingTool('second', 1000, 'pure')
