import { runFullDisk } from '../campaign/full-disk.ts'
import type { Suite } from '../suite.ts'

export default {
  about:
    'the disk of the database is full for a while: nothing may be lost, and all goes on once there is space',
  run: runFullDisk,
} satisfies Suite
