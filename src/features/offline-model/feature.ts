import { defineFeature } from '../definitions.ts'

export default defineFeature({ id: 'offline-model', tables: [] })
