/** The bytes of an answer as they come. To be read to the end or cancelled, since the connection waits for it. */
export type Body = {
  /** What came since the last call, or what comes next; null at the end. One call at a time. Throws when it breaks off. */
  read(): Promise<Uint8Array | null>
  /** The rest is not wanted: its end is waited for a moment, else the connection is closed. Safe at any time. */
  cancel(): void
}

export type Answer = {
  status: number
  /** By a name in lower case; those that came more than once are joined by a comma. */
  headers: { get(name: string): string | null }
  /** Decompressed. */
  body: Body
}

/** The only way out to addresses that came from data. */
export type Egress = AsyncDisposable & {
  /** Loads what a first request would wait for. */
  prepare?(): Promise<unknown>
  /** One HTTP request, refusing addresses that are not public unless `allowPrivate`. Throws `egress_refused`. */
  request(
    url: string,
    init: {
      method?: string
      headers?: Record<string, string>
      body?: string | Uint8Array | null
      signal?: AbortSignal | null
      /** Called in the moment before the first byte, when there is a connection; where it throws, nothing is sent. */
      beforeSend?: () => void
      allowPrivate?: boolean
      /** Followed, each checked anew; 0 gives the 3xx answer itself. At most 3. */
      maxRedirects?: number
    },
  ): Promise<Answer>
}
