import { findResponseFormats } from '../../src/app/early-services.ts'

/** What reads answers in formats of vendors, as the build has it. */
export const responseFormats = await findResponseFormats()
