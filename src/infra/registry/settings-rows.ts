import { MasonError } from '../../state/errors.ts'
import { settingsEmbeddingModelId, settingsModelId } from '../models/choose/lines.ts'
import { settingsEndpointId, settingsKeyId, settingsVendorId } from './settings-entries.ts'

/** The rows that follow the OPENAI_* settings; seeding writes them. */
const settingOf: Readonly<Record<string, string>> = {
  [settingsVendorId]: 'OPENAI_API_KEY and OPENAI_BASE_URL',
  [settingsKeyId]: 'OPENAI_API_KEY',
  [settingsEndpointId]: 'OPENAI_BASE_URL',
  [settingsModelId]: 'OPENAI_MODEL',
  [settingsEmbeddingModelId]: 'OPENAI_EMBEDDING_MODEL',
}

/** Keeps admins from changing by hand what comes back with the next start: `owned` fields, and the row as a whole. */
export const guardSettings =
  <Change extends object>(name: string, owned: readonly (keyof Change & string)[]) =>
  (row: { id: string } & Partial<Record<string, unknown>>, change: Change | 'remove'): void => {
    const { id } = row
    const setting = settingOf[id]
    if (setting === undefined) return
    if (change === 'remove')
      throw new MasonError('in_use', `${name} "${id}" is used by the setting ${setting}`, {
        remedy: 'unset it and start again; it is out of use then',
        detail: { users: [{ kind: 'setting', id: setting, name: setting }] },
      })
    const field = owned.find((one) => change[one] !== undefined && change[one] !== row[one])
    if (field === undefined) return
    throw new MasonError('forbidden', `${field} of ${name} "${id}" follows the setting ${setting}`, {
      remedy: `change the setting, or add a ${name} of your own`,
    })
  }
