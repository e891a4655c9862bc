/** Which parts of a request to a vendor and of its response may be stored or shown: only those named here. */

/** Of both directions, in lower case. None of them carries a credential in any vendor's API that we know of. */
const publicHeaderNames = new Set(
  [
    'accept accept-encoding accept-language anthropic-beta anthropic-version cache-control',
    'content-encoding content-length content-type date http-referer openai-beta',
    'openai-processing-ms openai-version request-id retry-after retry-after-ms server',
    'transfer-encoding user-agent x-mason-role x-request-id x-title',
  ].flatMap((names) => names.split(' ')),
)

/** Prefixes of header families such as `x-ratelimit-remaining-tokens`. */
const publicHeaderPrefixes = ['x-ratelimit-', 'anthropic-ratelimit-', 'x-stainless-'] as const

/** Whether the value of a header may be shown. */
export const isPublicHeader = (name: string): boolean => {
  const lower = name.toLowerCase()
  return publicHeaderNames.has(lower) || publicHeaderPrefixes.some((prefix) => lower.startsWith(prefix))
}

const authScheme = /^(bearer|basic|token|key|apikey|api-key) +/i

/** The secret parts of an endpoint's headers, without the authentication scheme and the placeholder `{{key}}`. */
export const listHeaderSecrets = (headers: Readonly<Record<string, string>>): string[] =>
  Object.entries(headers)
    .filter(([name]) => !isPublicHeader(name))
    .flatMap(([, value]) => value.replace(authScheme, '').split(/\{\{[^{}]*\}\}/))
    .map((part) => part.trim())
    .filter((part) => part !== '')
