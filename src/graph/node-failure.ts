import { type ErrorCode, MasonError } from '../state/errors.ts'
import type { ActionBody } from '../state/runtime-state.ts'

/** The failure of a node that leaves more in its action than the error, which the run shows as a whole. */
export class NodeFailureError extends MasonError {
  readonly result: ActionBody['result']

  constructor(
    code: ErrorCode,
    message: string,
    options: ConstructorParameters<typeof MasonError>[2],
    result: ActionBody['result'],
  ) {
    super(code, message, options)
    this.result = result
  }
}
