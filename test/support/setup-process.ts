import { preferBuild } from './script-flags.ts'

export default (): void => preferBuild()
