import type { Json } from '../runtime-state.ts'

/** The users of the run's business. */
export type UserProfiles = {
  /** What is known of a user; empty for an unknown one. */
  profile(userId: string): Promise<Record<string, Json>>
}

declare module './services.ts' {
  interface Services {
    users: UserProfiles
  }
}
