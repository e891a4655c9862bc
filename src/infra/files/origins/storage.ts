import { AwsV4Signer } from 'aws4fetch'
import { businessMark } from '../../config/files-root.ts'
import type { StoragePlaces, StorageProvider } from '../../config/storage.ts'
import type { Egress } from '../../egress/port.ts'
import { plainlyPrivate } from '../../egress/urls.ts'
import { download } from './download.ts'
import { FileFault } from './fault.ts'
import type { Saved } from './save.ts'

const maxMs = 120_000

type Place = { provider: StorageProvider; path: string }
type Options = { egress: Egress; places: StoragePlaces; maxBytes: number }

/**
 * An object of S3-compatible storage (GET Object, Signature Version 4), which aliyun, tencent, aws and gcc speak alike.
 * Its address is the admin's, so it may be private; the object's path is the business's and stays below it.
 */
export const fetchObject = async (
  { egress, places, maxBytes }: Options,
  { provider, path: key }: Place,
  business: string,
  path: string,
  signal: AbortSignal,
): Promise<Saved> => {
  const place = places[provider]
  const setting = `MASON_STORAGE_${provider.toUpperCase()}`
  if (!place)
    throw new FileFault(
      `it is mapped to ${provider}, and no storage of ${provider} is set up; set ${setting}_URL, ${setting}_ACCESS_KEY_ID and ${setting}_SECRET_ACCESS_KEY`,
    )
  const url = `${place.url.replaceAll(businessMark, encodeURIComponent(business)).replace(/\/+$/, '')}/${keyPath(key)}`
  const signer = new AwsV4Signer({
    url,
    accessKeyId: place.accessKeyId,
    secretAccessKey: place.secretAccessKey,
    service: 's3',
    region: place.region,
  })
  const { url: signed, headers } = await signer.sign()
  const request = {
    url: signed.href,
    shown: provider,
    headers: Object.fromEntries(headers as unknown as Iterable<[string, string]>),
    allowPrivate: plainlyPrivate(place.url.replaceAll(businessMark, 'b')),
    maxRedirects: 0,
    maxBytes,
    maxMs,
    refusal: (status: number) => refusalOf(status, provider, key, setting),
  }
  return download(egress, request, path, signal)
}

/** Each part escaped; parts that lead upwards are refused, since the address would swallow them. */
const keyPath = (key: string): string => {
  const parts = key.replace(/^\/+/, '').split('/')
  if (parts.some((part) => part === '.' || part === '..'))
    throw new FileFault(`the path of its mapping leads upwards: ${key}; name the object's own path`)
  return parts.map(encodeURIComponent).join('/')
}

const refusalOf = (status: number, provider: string, key: string, setting: string): string => {
  if (status === 404) return `${provider} has no object "${key}"; check the path of its mapping`
  if (status === 401 || status === 403)
    return `${provider} does not let "${key}" be read (status ${status}); check the key in ${setting}_ACCESS_KEY_ID and what it may read`
  if (status >= 300 && status < 400)
    return `${provider} says that the bucket is elsewhere (status ${status}); check ${setting}_URL and ${setting}_REGION`
  return `${provider} answered with status ${status} for "${key}"; try again later`
}
