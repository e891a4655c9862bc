import { MasonError } from '../../state/errors.ts'
import { settingsEmbeddingModelId, settingsModelId } from '../routing/candidate-order.ts'
import { settingsEndpointId, settingsKeyId, settingsVendorId } from './settings-entries.ts'

/** The rows that follow the OPENAI_* settings; seeding writes them. */
const settingsById: Readonly<Record<string, string>> = {
  [settingsVendorId]: 'OPENAI_API_KEY and OPENAI_BASE_URL',
  [settingsKeyId]: 'OPENAI_API_KEY',
  [settingsEndpointId]: 'OPENAI_BASE_URL',
  [settingsModelId]: 'OPENAI_MODEL',
  [settingsEmbeddingModelId]: 'OPENAI_EMBEDDING_MODEL',
}

/** Refuses changes that the next start would undo: of the `owned` fields of a row of the settings, and its removal. Throws `in_use` or `forbidden`. */
export const createSettingsGuard =
  <Change extends object>(name: string, owned: readonly (keyof Change & string)[]) =>
  (row: { id: string } & Partial<Record<string, unknown>>, change: Change | 'remove'): void => {
    const { id } = row
    const setting = settingsById[id]
    if (setting === undefined) return
    if (change === 'remove')
      throw new MasonError('in_use', `${name} "${id}" is used by the setting ${setting}`, {
        remedy: 'unset the setting and restart',
        detail: { users: [{ kind: 'setting', id: setting, name: setting }] },
      })
    const field = owned.find((one) => change[one] !== undefined && change[one] !== row[one])
    if (field === undefined) return
    throw new MasonError('forbidden', `${field} of ${name} "${id}" follows the setting ${setting}`, {
      remedy: `change the setting, or add a ${name} of your own`,
    })
  }
