/**
 * True in `npm test`, where a test whose file has cheaper ones of its kind may be left out: `if (!isGate) test(…)`. Alone and in
 * `npm run test:all` all tests of a file run. A whole file is left out by its mark.
 */
export const isGate = process.env.MASON_TEST_TIER === 'gate'
