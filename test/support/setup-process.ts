import { makeTemplate } from './processes.ts'
import { preferBuild } from './script-flags.ts'

export default async (): Promise<() => Promise<void>> => {
  preferBuild()
  return makeTemplate()
}
