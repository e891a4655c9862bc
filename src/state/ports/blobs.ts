/** Bytes by their content hash: results over 32 KB and files that the run's session holds. */
export type Blobs = {
  /** Null: the session holds no such bytes, whatever text names them. */
  read(sha256: string): Promise<Uint8Array | null>
  /** Resolves with the hash. */
  store(bytes: Uint8Array): Promise<string>
}

declare module './services.ts' {
  interface Services {
    blobs: Blobs
  }
}
