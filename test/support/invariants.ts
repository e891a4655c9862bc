// biome-ignore lint/performance/noBarrelFile: the check is an export of the package, and the tests use it as a helper
export { checkInvariants } from '../../src/testing/invariants.ts'
