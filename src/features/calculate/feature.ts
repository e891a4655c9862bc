import { defineFeature } from '../definitions.ts'

export default defineFeature({ id: 'calculate', tables: [] })
