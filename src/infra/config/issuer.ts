import type { Config } from './config.ts'

/** Who signs receipts and verifies mandates: the public address of this Mason. */
export const toIssuer = ({ publicUrl, http }: Config): string => publicUrl ?? `http://localhost:${http.port}`
