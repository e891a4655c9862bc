/** A bad expression: what is wrong, how to mend it, and where (0-based), once it is known. Never leaves `calculate`. */
export class ExpressionFault extends Error {
  readonly remedy: string
  readonly at: number | undefined

  constructor(message: string, remedy: string, at?: number) {
    super(message)
    this.name = 'ExpressionFault'
    this.remedy = remedy
    this.at = at
  }
}
