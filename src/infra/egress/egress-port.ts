/** The bytes of a response as they arrive. Read it to the end or cancel it, because the connection waits for that. */
export type EgressBody = {
  /** The bytes since the last call, or the next ones; null at the end. One call at a time. Throws when the body ends early. */
  read(): Promise<Uint8Array | null>
  /** Discards the rest: waits a moment for its end, else closes the connection. Safe at any time. */
  cancel(): void
}

/** A response, available as soon as its headers have arrived. */
export type EgressResponse = {
  status: number
  /** Looked up by a name in lower case; repeated headers are joined by a comma. */
  headers: { get(name: string): string | null }
  /** Decompressed. */
  body: EgressBody
}

/** The only way to open connections to addresses that came from data. */
export type Egress = AsyncDisposable & {
  /** Loads the modules that a first request needs. */
  prepare?(): Promise<unknown>
  /** One HTTP request, refusing addresses that are not public unless `allowPrivate`. Throws `egress_refused`. */
  request(
    url: string,
    init: {
      method?: string
      headers?: Record<string, string>
      body?: string | Uint8Array | null
      signal?: AbortSignal | null
      /** Called right before the first byte, once there is a connection; nothing is sent when it throws. */
      beforeSend?: () => void
      allowPrivate?: boolean
      /** How many redirects are followed, each checked again; at most 3. 0 returns the 3xx response itself. */
      maxRedirects?: number
    },
  ): Promise<EgressResponse>
}
