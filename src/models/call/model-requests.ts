import type { Egress } from '../../infra/egress/egress-port.ts'
import type { ModelGateway } from '../ports/call-ports.ts'
import type { ModelChooser } from '../routing/choose-model-and-key.ts'
import type { RequestServices } from './metered-request.ts'

/** What a feature makes requests to models of, beside those that `ask` answers. @internal */
export type ModelRequests = RequestServices & {
  ask: ModelGateway['ask']
  chooser: Pick<ModelChooser, 'listActive' | 'isOpenTo'>
  /** To the addresses of vendors. */
  egress: Egress
}
