/**
 * Why the bytes of a file are not to be had, in words for whoever gave it: what happened, and what to do. `passing`: it
 * may be otherwise in a while, so it is worth another try.
 */
export class FileFault extends Error {
  readonly passing: boolean

  constructor(message: string, { passing = false }: { passing?: boolean } = {}) {
    super(message)
    this.passing = passing
  }
}
