import { FileFault } from './fault.ts'

/** What is wrong is with this machine's own disk: whoever gave the file hears that there is no room, the operator why. */
export class DiskFault extends FileFault {
  readonly code: string

  constructor(code: string) {
    super('this machine has no room for it just now; try again later', { passing: true })
    this.code = code
  }
}

/** Something done to the disk; its faults become DiskFaults. */
export const onDisk = <Result>(work: Promise<Result>): Promise<Result> =>
  work.catch((error: NodeJS.ErrnoException) => {
    throw error.code === undefined || error.code === 'ABORT_ERR' ? error : new DiskFault(error.code)
  })
