import { z } from 'zod'

/** The methods that a request to an allowed host may have. */
const httpMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** RFC 9110, 5.6.2: a token, of a sane length. */
const headerName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, 'must be the name of an HTTP header')
const headerValue = z
  .string()
  .max(2000)
  .regex(/^[\t\x20-\x7e]*$/, 'must be printable ASCII on one line')

/** Headers of the connection, which the HTTP client writes itself. */
const ownHeaders =
  /^(?:host|connection|content-length|transfer-encoding|keep-alive|te|trailer|upgrade|expect|proxy-.*)$/i

/** A record whose names are checked as its values are, so that an error says what is wrong with a name. */
const createNamed = <Value extends z.ZodType>(name: z.ZodType<string>, value: Value, max: number) =>
  z.record(z.string(), value).superRefine((record, { addIssue }) => {
    const names = Object.keys(record)
    if (names.length > max) addIssue(`has more than ${max} names`)
    for (const key of names)
      for (const { message } of name.safeParse(key).error?.issues ?? [])
        addIssue({ code: 'custom', path: [key], message: `the name ${message}` })
  })

/** Headers of a request to an allowed host. */
export const httpHeadersSchema = createNamed(
  headerName.refine((name) => !ownHeaders.test(name), 'is of a header that Mason writes itself'),
  headerValue,
  20,
)

const httpHostSchema = z.strictObject({
  host: z
    .string()
    .max(300)
    .regex(
      /^(?:(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/,
      'must be a host in lower case without scheme and path, such as api.example.com, *.example.com or localhost:8080',
    )
    .describe('The host, with a port where it is not the usual one; `*.example.com` allows every subdomain'),
  methods: z
    .array(z.enum(httpMethods))
    .min(1)
    .describe('The methods that a request may have')
    .default([...httpMethods]),
  headers: httpHeadersSchema
    .describe('Sent with every request, not seen by the model; `{secrets.NAME}` is the secret of that name')
    .default({}),
  idempotency_header: headerName
    .nullable()
    .describe('The header for an idempotency key; null: a request that may have arrived is never repeated')
    .default(null),
  allow_private: z.boolean().describe('Allows private addresses, and http beside https').default(false),
})

/** A host that the runs of a business may call, as it is stored. */
export type HttpHost = z.infer<typeof httpHostSchema>

const maxHostsBytes = 16 * 1024

/** The hosts that the runs of a business may call with `http_request`. */
export const httpHostsSchema = z
  .array(httpHostSchema)
  .max(100)
  .refine((hosts) => JSON.stringify(hosts).length <= maxHostsBytes, 'has more than 16 KB as JSON')

const secretName = z
  .string()
  .regex(/^[A-Za-z]\w{0,63}$/, 'must be up to 64 letters, digits and _, and begin with a letter')
/** Long enough to be found, and replaced, in what a host answers. */
const secretValue = z
  .string()
  .min(8)
  .max(2000)
  .regex(/^[\x20-\x7e]*$/, 'must be printable ASCII on one line')

/** Secrets of a new business by name. */
export const secretsSchema = createNamed(secretName, secretValue, 100)
/** Secrets that PATCH sets; null deletes one. */
export const secretChangesSchema = createNamed(secretName, secretValue.nullable(), 100)
/** See `secretChangesSchema`. */
export type SecretChanges = z.infer<typeof secretChangesSchema>

const secretReference = /\{secrets\.(\w{1,64})\}/g

/** The value of a configured header, with its secrets filled in. Null where one of them is missing. */
export const fillSecrets = (value: string, secrets: Readonly<Record<string, string>>): string | null =>
  listSecretNames(value).every((name) => Object.hasOwn(secrets, name))
    ? value.replaceAll(secretReference, (_, name: string) => secrets[name] ?? '')
    : null

/** The names of the secrets in the value of a header. */
export const listSecretNames = (value: string): string[] =>
  [...value.matchAll(secretReference)].map(([, name]) => name as string)

/** Headers with their names in lower case. */
export const toLowerNames = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
