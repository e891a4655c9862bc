import { defineFeature } from '../definitions.ts'

export default defineFeature({ id: 'user-memory', tables: [] })
