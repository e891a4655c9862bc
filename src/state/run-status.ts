/**
 * The statuses of a run that has not ended. `waiting`: it waits for a payment, a run or a job. Outside Mason that is
 * `running`; see `toPublicStatusSql`.
 */
export const openStatuses = ['queued', 'running', 'input_required', 'waiting'] as const

/** The same as a list in SQL, in the words of the index `runs_not_ended`. */
export const openStatusesSql = `('queued', 'running', 'input_required', 'waiting')`

/** As a list in SQL: a run without a lease that an answer or the end of a wait queues again. */
export const parkedStatusesSql = `('input_required', 'waiting')`

/** The status of a run as the API shows it; `column` is SQL. */
export const toPublicStatusSql = (column: string): string =>
  `CASE ${column} WHEN 'waiting' THEN 'running' ELSE ${column} END`
