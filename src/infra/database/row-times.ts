/** The row of a view: its times are dates. */
export type Dated<View> = {
  [Name in keyof View]: Name extends `${string}_at` ? Date | Extract<View[Name], null> : View[Name]
}
type Undated<Value> = Value extends Date ? string : Value

/** A row with its times as ISO 8601. */
export const toIsoTimes = <Row extends object>(row: Row): { [Name in keyof Row]: Undated<Row[Name]> } =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, value instanceof Date ? value.toISOString() : value]),
  ) as { [Name in keyof Row]: Undated<Row[Name]> }
