/** `ok` follows from the database alone; `checks` has every service. */
export type HealthReport = {
  ok: boolean
  checks: Record<string, { ok: true; ms: number } | { ok: false; error: string }>
}
