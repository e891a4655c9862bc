/** Results over 32 KB, by content hash, of the run's business. */
export type Blobs = { read(sha256: string): Promise<Uint8Array | null> }

declare module './services.ts' {
  interface Services {
    blobs: Blobs
  }
}
