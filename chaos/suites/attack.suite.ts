import { attack } from '../attack/attack.ts'
import type { Suite } from '../suite.ts'

const suite: Suite = {
  about:
    "hostile businesses, bodies, vendors, files, patterns, prompts, memories, jobs and settings: each is refused or harmless, and another business's runs complete",
  run: (options) => attack(options),
}
export default suite
