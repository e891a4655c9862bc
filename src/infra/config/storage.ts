import type { z } from 'zod'

/** Object storage that mappings may point into: one bucket, or a folder of it, for each provider. */
export type StoragePlace = {
  /** Up to and with the bucket; `{business}` in it is the business's id. */
  url: string
  region: string
  accessKeyId: string
  secretAccessKey: string
}

const storageProviders = ['aliyun', 'tencent', 'aws', 'gcc'] as const
export type StorageProvider = (typeof storageProviders)[number]
export type StoragePlaces = Partial<Record<StorageProvider, StoragePlace>>

type Part = 'URL' | 'REGION' | 'ACCESS_KEY_ID' | 'SECRET_ACCESS_KEY'
export type StorageSetting = `MASON_STORAGE_${Uppercase<StorageProvider>}_${Part}`

const storageSetting = (provider: StorageProvider, part: Part): StorageSetting =>
  `MASON_STORAGE_${provider.toUpperCase() as Uppercase<StorageProvider>}_${part}`

const storageParts = ['URL', 'REGION', 'ACCESS_KEY_ID', 'SECRET_ACCESS_KEY'] as const

/** One entry for each provider and part. */
const forEach = <Value>(make: (part: Part) => Value): Record<StorageSetting, Value> =>
  Object.fromEntries(
    storageProviders.flatMap((provider) =>
      storageParts.map((part) => [storageSetting(provider, part), make(part)]),
    ),
  ) as Record<StorageSetting, Value>

export const storageShape = <Address extends z.ZodType, Text extends z.ZodType>(
  address: Address,
  text: Text,
) =>
  forEach((part) => (part === 'URL' ? address : text)) as Record<
    `MASON_STORAGE_${Uppercase<StorageProvider>}_URL`,
    Address
  > &
    Record<Exclude<StorageSetting, `${string}_URL`>, Text>

const examples: Record<Part, string> = {
  URL: 'set the address of the bucket, for example https://my-bucket.s3.eu-central-1.amazonaws.com',
  REGION: 'set the region of the bucket, for example eu-central-1; leave it out for "auto"',
  ACCESS_KEY_ID: 'copy the id of an access key that may read the bucket',
  SECRET_ACCESS_KEY: 'copy the secret of the access key, without quotes, spaces or line ends',
}

export const storageRemedies: Record<StorageSetting, string> = forEach((part) => examples[part])

/** The places whose three needed settings are there. */
export const storageOf = (settings: Partial<Record<StorageSetting, string | undefined>>): StoragePlaces =>
  Object.fromEntries(
    storageProviders.flatMap((provider) => {
      const [url, region, accessKeyId, secretAccessKey] = storageParts.map(
        (part) => settings[storageSetting(provider, part)],
      )
      return url && accessKeyId && secretAccessKey
        ? [[provider, { url, region: region ?? 'auto', accessKeyId, secretAccessKey }]]
        : []
    }),
  )

/** The settings of a provider that are missing beside those that are set. */
export const missingStorage = (raw: Partial<Record<StorageSetting, string>>): StorageSetting[] =>
  storageProviders.flatMap((provider) => {
    const isSet = (part: Part): boolean => raw[storageSetting(provider, part)] !== undefined
    return storageParts.some(isSet)
      ? (['URL', 'ACCESS_KEY_ID', 'SECRET_ACCESS_KEY'] as const)
          .filter((part) => !isSet(part))
          .map((part) => storageSetting(provider, part))
      : []
  })
