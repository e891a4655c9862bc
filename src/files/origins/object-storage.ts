import { AwsV4Signer } from 'aws4fetch'
import type { StorageLocations, StorageProvider } from '../../infra/config/storage.ts'
import { businessPlaceholder } from '../../infra/config/storage.ts'
import type { Egress } from '../../infra/egress/egress-port.ts'
import { isPlainlyPrivate } from '../../infra/egress/urls.ts'
import { downloadFile, type SavedFile } from './download.ts'
import { FileError } from './file-error.ts'

const maxMs = 120_000

type ObjectLocation = { provider: StorageProvider; path: string }
type StorageOptions = { egress: Egress; buckets: StorageLocations; maxBytes: number }

/**
 * Downloads an object of S3-compatible storage (GET Object, Signature Version 4), which aliyun, tencent, aws and gcc all
 * support. The bucket's address is the admin's, so it may be private; the object's path is the business's and stays below
 * it. Throws `FileError`.
 */
export const downloadObject = async (
  { egress, buckets, maxBytes }: StorageOptions,
  { provider, path: key }: ObjectLocation,
  business: string,
  path: string,
  signal: AbortSignal,
): Promise<SavedFile> => {
  const bucket = buckets[provider]
  const setting = `MASON_STORAGE_${provider.toUpperCase()}`
  if (!bucket)
    throw new FileError(
      `it is mapped to ${provider}, and no storage of ${provider} is set up; set ${setting}_URL, ${setting}_ACCESS_KEY_ID and ${setting}_SECRET_ACCESS_KEY`,
    )
  const url = `${bucket.url.replaceAll(businessPlaceholder, encodeURIComponent(business)).replace(/(?<!\/)\/+$/, '')}/${toKeyPath(key)}`
  const signer = new AwsV4Signer({
    url,
    accessKeyId: bucket.accessKeyId,
    secretAccessKey: bucket.secretAccessKey,
    service: 's3',
    region: bucket.region,
  })
  const { url: signed, headers } = await signer.sign()
  const request = {
    url: signed.href,
    source: provider,
    init: {
      headers: Object.fromEntries(headers as unknown as Iterable<[string, string]>),
      allowPrivate: isPlainlyPrivate(bucket.url.replaceAll(businessPlaceholder, 'b')),
      maxRedirects: 0,
    },
    maxBytes,
    maxMs,
    toRefusal: (status: number) => toRefusal(status, provider, key, setting),
  }
  return downloadFile(egress, request, path, signal)
}

/** Escapes each segment. Refuses segments that lead upwards, since URL parsing would resolve them. */
const toKeyPath = (key: string): string => {
  const segments = key.replace(/^\/+/, '').split('/')
  if (segments.some((segment) => segment === '.' || segment === '..'))
    throw new FileError(`the path of its mapping leads upwards: ${key}; name the object's own path`)
  return segments.map(encodeURIComponent).join('/')
}

const toRefusal = (status: number, provider: string, key: string, setting: string): string => {
  if (status === 404) return `${provider} has no object "${key}"; check the path of its mapping`
  if (status === 401 || status === 403)
    return `${provider} does not allow reading "${key}" (status ${status}); check the key in ${setting}_ACCESS_KEY_ID and its permissions`
  if (status >= 300 && status < 400)
    return `${provider} says that the bucket is elsewhere (status ${status}); check ${setting}_URL and ${setting}_REGION`
  return `${provider} answered with status ${status} for "${key}"; try again later`
}
