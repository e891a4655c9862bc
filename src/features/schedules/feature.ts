import { defineFeature } from '../definitions.ts'

export default defineFeature({ id: 'schedules', tables: ['schedules'] })
