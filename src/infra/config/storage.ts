import { dirname } from 'node:path'
import type { z } from 'zod'

/** One bucket, or a folder in it, that mappings of a provider may read. */
export type StorageLocation = {
  /** The address of the bucket; `{business}` in it is the business id. */
  url: string
  region: string
  accessKeyId: string
  secretAccessKey: string
}

const storageProviders = ['aliyun', 'tencent', 'aws', 'gcc'] as const
/** A provider of object storage. */
export type StorageProvider = (typeof storageProviders)[number]
/** The configured storage by provider. */
export type StorageLocations = Partial<Record<StorageProvider, StorageLocation>>

type StorageSettingPart = keyof typeof partRemedies
/** The name of a storage setting. */
export type StorageSetting = `MASON_STORAGE_${Uppercase<StorageProvider>}_${StorageSettingPart}`

const toSettingName = (provider: StorageProvider, part: StorageSettingPart): StorageSetting =>
  `MASON_STORAGE_${provider.toUpperCase() as Uppercase<StorageProvider>}_${part}`

const partRemedies = {
  URL: 'set the address of the bucket, for example https://my-bucket.s3.eu-central-1.amazonaws.com',
  REGION: 'set the region of the bucket, for example eu-central-1; remove it for "auto"',
  ACCESS_KEY_ID: 'copy the id of an access key that may read the bucket',
  SECRET_ACCESS_KEY: 'copy the secret of the access key, without quotes, spaces or line ends',
}
const storageParts = Object.keys(partRemedies) as StorageSettingPart[]

/** One entry for each provider and part. */
const mapStorageSettings = <Value>(
  make: (part: StorageSettingPart) => Value,
): Record<StorageSetting, Value> =>
  Object.fromEntries(
    storageProviders.flatMap((provider) =>
      storageParts.map((part) => [toSettingName(provider, part), make(part)]),
    ),
  ) as Record<StorageSetting, Value>

/** The zod shape of all storage settings: URLs are parsed by `address`, the others by `text`. */
export const createStorageShape = <Address extends z.ZodType, Text extends z.ZodType>(
  address: Address,
  text: Text,
) =>
  mapStorageSettings((part) => (part === 'URL' ? address : text)) as Record<
    `MASON_STORAGE_${Uppercase<StorageProvider>}_URL`,
    Address
  > &
    Record<Exclude<StorageSetting, `${string}_URL`>, Text>

/** What to do about a wrong value of each storage setting. */
export const storageRemedies = mapStorageSettings((part) => partRemedies[part])

/** The storage of the providers whose required settings are all set. */
export const readStorageLocations = (
  settings: Partial<Record<StorageSetting, string | undefined>>,
): StorageLocations =>
  Object.fromEntries(
    storageProviders.flatMap((provider) => {
      const [url, region, accessKeyId, secretAccessKey] = storageParts.map(
        (part) => settings[toSettingName(provider, part)],
      )
      return url && accessKeyId && secretAccessKey
        ? [[provider, { url, region: region ?? 'auto', accessKeyId, secretAccessKey }]]
        : []
    }),
  )

/** The required settings that are missing where other settings of the same provider are set. */
export const listMissingStorage = (raw: Partial<Record<StorageSetting, string>>): StorageSetting[] =>
  storageProviders.flatMap((provider) => {
    const isSet = (part: StorageSettingPart): boolean => raw[toSettingName(provider, part)] !== undefined
    return storageParts.some(isSet)
      ? (['URL', 'ACCESS_KEY_ID', 'SECRET_ACCESS_KEY'] as const)
          .filter((part) => !isSet(part))
          .map((part) => toSettingName(provider, part))
      : []
  })

/** The placeholder for the business id in a setting, which gives each business a folder of its own. */
export const businessPlaceholder = '{business}'

/** The part of a root before the placeholder, which must exist; folders of businesses may be created later. */
export const toFixedRoot = (root: string): string => {
  const at = root.indexOf(businessPlaceholder)
  return at === -1 ? root : dirname(`${root.slice(0, at)}_`)
}

/** Whether all businesses share the root, so that each can name the files of the others. */
export const isSharedRoot = (root: string | null): boolean =>
  root !== null && !root.includes(businessPlaceholder)
