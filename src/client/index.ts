// biome-ignore-all lint/performance/noBarrelFile: this file is the public face of mason-runtime/client

/** What programs import from `mason-runtime/client`. It imports nothing but files of this package without dependencies. */

export { ClientError } from './client-error.ts'
export { type Client, createClient } from './create-client.ts'
