/** Why a walk is stopped from outside: the reason of its abort signal. */
type Stop =
  | { kind: 'cancel'; reason: string }
  | { kind: 'time' }
  /** Another worker has the run, or this one is done with it. */
  | { kind: 'lease_lost' }
  /** The worker is shutting down and hands the run back. */
  | { kind: 'hand_back' }

export class Stopped extends Error {
  readonly stop: Stop
  constructor(stop: Stop) {
    super(`the run was stopped: ${stop.kind}`)
    this.name = 'Stopped'
    this.stop = stop
  }
}
