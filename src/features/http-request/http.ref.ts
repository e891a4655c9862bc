/** A request of a run to an allowed host, as JSON can hold it. */
export type HostRequest = {
  method: string
  url: string
  headers: Record<string, string>
  body: string | null
}

/** What a host answered, or why there is no answer. Secrets of the business are replaced in the text. */
export type HostReply =
  | {
      ok: true
      status: number
      content_type: string | null
      /** Where a redirect leads; it is not followed. */
      location: string | null
      /** At most 1 MB; empty where the body is not text. */
      text: string
      /** What is not in the text, or null. */
      note: string | null
    }
  | { ok: false; error: string }

/** Whether a request is allowed. `key_header` takes the key of a request that may be sent again, or is null. */
export type HostPermission = { ok: true; key_header: string | null } | { ok: false; error: string }

/** How runs call hosts that an admin has allowed for their business. */
export type HttpAccess = {
  /** Whether any host is allowed. */
  hasHosts(): Promise<boolean>
  /** Whether the host and the method are allowed; an error says what to do. */
  check(request: HostRequest): Promise<HostPermission>
  /**
   * Sends a request with the headers that are configured for its host. Throws only where a request that changes something
   * may have arrived, and with what `beforeSend` throws, which is called in the moment before the first byte.
   */
  send(
    request: HostRequest,
    options: { key: string | null; beforeSend: () => void },
    signal: AbortSignal,
  ): Promise<HostReply>
}

declare module '../../state/ports/services.ts' {
  interface FeatureServices {
    http: HttpAccess
  }
}
