import { defineCommand } from '../command-definition.ts'

export default defineCommand({
  name: 'ap2',
  description: 'verify and read mandates of the Agent Payments Protocol',
  add(ap2, { runAlone }) {
    ap2
      .command('verify')
      .description('verify chains of mandates, one JSON object a line, and print a verdict on each')
      .argument('[file]', 'JSON lines; - is standard input', '-')
      .action((path: string) =>
        runAlone(async (tools) => (await import('./ap2/verify.ts')).verifyMandates(path, tools)),
      )
    ap2
      .command('inspect')
      .description('print a token for people, without verifying it')
      .argument('<token>', 'a chain of mandates, an SD-JWT or a JWT')
      .action((token: string) =>
        runAlone(async (tools) => (await import('./ap2/inspect.ts')).inspectToken(token, tools)),
      )
  },
})
