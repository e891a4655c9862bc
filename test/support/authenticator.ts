import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'

const toBase64Url = (data: string | Uint8Array): string => Buffer.from(data).toString('base64url')
const sha256 = (data: string | Uint8Array): Buffer => createHash('sha256').update(data).digest()

/** CBOR (RFC 8949) of what an authenticator sends: small integers, bytes, texts and maps. */
const toCbor = (value: number | string | Uint8Array | Map<unknown, unknown>): Buffer => {
  const head = (major: number, size: number): Buffer =>
    Buffer.from(
      size < 24
        ? [(major << 5) | size]
        : size < 256
          ? [(major << 5) | 24, size]
          : [(major << 5) | 25, size >> 8, size & 255],
    )
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (value instanceof Uint8Array) return Buffer.concat([head(2, value.length), value])
  const entries = [...value].flatMap(([key, item]) => [toCbor(key as string), toCbor(item as string)])
  return Buffer.concat([head(5, value.size), ...entries])
}

/** What a test changes of what an authenticator and a browser say. */
export type Ceremony = {
  challenge: string
  origin: string
  rpId: string
  verified?: boolean
  counter?: number
  crossOrigin?: boolean
}

/** A passkey in software, as WebAuthn Level 3 describes it: P-256, attestation `none`. */
export const createAuthenticator = () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  const id = randomBytes(16)
  const authData = (
    { rpId, verified = true, counter = 0 }: Ceremony,
    flags: number,
    more = Buffer.alloc(0),
  ) => {
    const tail = Buffer.alloc(5)
    tail.writeUInt8(flags | 1 | (verified ? 4 : 0), 0)
    tail.writeUInt32BE(counter, 1)
    return Buffer.concat([sha256(rpId), tail, more])
  }
  const clientData = (type: string, { challenge, origin, crossOrigin = false }: Ceremony): string =>
    JSON.stringify({ type, challenge, origin, crossOrigin })
  const common = {
    id: toBase64Url(id),
    rawId: toBase64Url(id),
    type: 'public-key',
    clientExtensionResults: {},
  }
  return {
    id: common.id,
    /** What `navigator.credentials.create()` gives. */
    create(ceremony: Ceremony) {
      const key = new Map<unknown, unknown>([
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, Buffer.from(x, 'base64url')],
        [-3, Buffer.from(y, 'base64url')],
      ])
      const credential = Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, toCbor(key)])
      const attestation = new Map<unknown, unknown>([
        ['fmt', 'none'],
        ['attStmt', new Map()],
        ['authData', authData(ceremony, 0x40, credential)],
      ])
      return {
        ...common,
        response: {
          clientDataJSON: toBase64Url(clientData('webauthn.create', ceremony)),
          attestationObject: toBase64Url(toCbor(attestation)),
          transports: ['internal'],
        },
      }
    },
    /** What `navigator.credentials.get()` gives. */
    get(ceremony: Ceremony) {
      const data = authData(ceremony, 0)
      const client = clientData('webauthn.get', ceremony)
      const signed = Buffer.concat([data, sha256(client)])
      return {
        ...common,
        response: {
          clientDataJSON: toBase64Url(client),
          authenticatorData: toBase64Url(data),
          signature: toBase64Url(sign('sha256', signed, privateKey)),
        },
      }
    },
  }
}

/** See `createAuthenticator`. */
export type Authenticator = ReturnType<typeof createAuthenticator>
