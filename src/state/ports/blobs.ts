/** Bytes by their content hash, of the run's business: results over 32 KB, and files. */
export type Blobs = {
  read(sha256: string): Promise<Uint8Array | null>
  /** Resolves with the hash. */
  store(bytes: Uint8Array): Promise<string>
}

declare module './services.ts' {
  interface Services {
    blobs: Blobs
  }
}
