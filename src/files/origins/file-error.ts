/**
 * Why the bytes of a file cannot be had, in words for the person who sent it: what is wrong, and what to do.
 * `isTransient`: a later attempt may succeed.
 */
export class FileError extends Error {
  readonly isTransient: boolean

  constructor(message: string, { isTransient = false }: { isTransient?: boolean } = {}) {
    super(message)
    this.isTransient = isTransient
  }
}

/** The error is this machine's own disk: the sender reads that there is no space, the operator reads the system's code. */
export class DiskError extends FileError {
  readonly code: string

  constructor(code: string) {
    super('this machine has no disk space for it at present; try again later', { isTransient: true })
    this.code = code
  }
}

/** Awaits an operation on the disk; its system errors become `DiskError`. */
export const toDiskErrors = <Result>(operation: Promise<Result>): Promise<Result> =>
  operation.catch((error: NodeJS.ErrnoException) => {
    throw error.code === undefined || error.code === 'ABORT_ERR' ? error : new DiskError(error.code)
  })
