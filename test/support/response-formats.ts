import { findResponseFormats } from '../../src/app/find-early.ts'

/** What reads answers in formats of vendors, as the build has it. */
export const responseFormats = await findResponseFormats()
