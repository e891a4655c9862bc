/** Why a walk is stopped from outside: the reason of its abort signal. */
type StopReason =
  | { kind: 'cancel'; reason: string }
  | { kind: 'time' }
  /** Another worker has the run, or this one is done with it. */
  | { kind: 'lease_lost' }
  /** The worker is shutting down and hands the run back. */
  | { kind: 'hand_back' }

/** The reason with which the work on a run is aborted. */
export class RunStoppedError extends Error {
  readonly stop: StopReason
  constructor(stop: StopReason) {
    super(`the run was stopped: ${stop.kind}`)
    this.name = 'Stopped'
    this.stop = stop
  }
}
