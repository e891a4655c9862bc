import { rolling } from '../rolling/rolling.ts'
import type { Suite } from '../suite.ts'

const suite: Suite = {
  about: 'workers and the API are stopped every 20 s under load: nothing lost or doubled, all exit with 0',
  run: rolling,
}

export default suite
